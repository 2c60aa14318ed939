"""The types of a profile's plain keys: what text, numbers and words may stand there."""

import json
import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from rocmrun.core.closest import did_you_mean
from rocmrun.core.grants import parse_grant
from rocmrun.core.ids import HIGHEST_ID, is_id
from rocmrun.core.profile.values import ParameterText, describe, text_or_integer
from rocmrun.core.reference import parse_reference
from rocmrun.core.selection import FORMS, is_selector
from rocmrun.errors import ReferenceInvalid

_DOTS = r"(?:.*/)?\.{1,2}(?:/|$)"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SELECTORS = tuple(form.partition(" ")[0] for form in FORMS)


def _integer(value: object) -> object:
    if isinstance(value, ParameterText) and re.fullmatch(r"-?[0-9]+", value):
        return int(value)
    return value


def _number(value: object) -> object:
    if isinstance(value, ParameterText) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
        return float(value)
    return value


def _signed_number(value: object) -> object:
    if isinstance(value, ParameterText) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        return float(value)
    return value


def _boolean(value: object) -> object:
    return (
        {"true": True, "false": False}.get(value, value)
        if isinstance(value, ParameterText)
        else value
    )


def _checked(pattern: str, wanted: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            msg = f'"{value}" is not {wanted}'
            raise ValueError(msg)
        return value

    return AfterValidator(check)


def _visible(value: str) -> str:
    """Whoever reads a plan does not see control characters, and takes one path for another."""
    if _CONTROLS.search(value):
        msg = f"{json.dumps(value)} has a control character"
        raise ValueError(msg)
    return value


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        msg = f'"{value}" is no regular expression: {error}'
        raise ValueError(msg) from error
    return value


def _group(value: object) -> str:
    text = text_or_integer(value, "a group")
    if not re.fullmatch(r"[0-9]+|path:/.*", text):
        msg = f'"{text}" is not a group number or "path:/TARGET" of a mount; names mean nothing in an image'
        raise ValueError(msg)
    if text.isdigit() and not is_id(text):
        msg = f"{text} is no group number: the highest is {HIGHEST_ID}"
        raise ValueError(msg)
    return text


def _user(value: str) -> str:
    uid, colon, gid = value.partition(":")
    for number in (uid, gid) if colon else ():
        if not is_id(number):
            msg = f"{number} is no user or group number: the highest is {HIGHEST_ID}"
            raise ValueError(msg)
    return value


def _scalar(value: object) -> str:
    """Return a parameter's default as the text that --set would have given."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    msg = f"expected a string, a number or a boolean, got {describe(value)}"
    raise ValueError(msg)


def _grant_text(value: str) -> str:
    return str(parse_grant(value))


def _one_spelling(path: str) -> str:
    return re.sub(r"/+", "/", path).rstrip("/")


def _selector(value: str) -> str:
    if not is_selector(value):
        meant = f"index:{value}" if value.isdigit() else value
        near = did_you_mean(meant, _SELECTORS) or f"; write one like {', '.join(_SELECTORS)}"
        msg = f'"{value}" does not select a GPU{near}'
        raise ValueError(msg)
    return value


def _image_text(value: str) -> str:
    try:
        parse_reference(value)
    except ReferenceInvalid as error:
        raise ValueError(error.message + (f"; {error.hint}" if error.hint else "")) from error
    return value


_VISIBLE = AfterValidator(_visible)
# No value of a container may hold NUL: the engine would cut or refuse it, long after the profile was read.
Text = Annotated[str, _checked(r"[^\0]*", "text without NUL characters")]
SourceText = Annotated[str, _VISIBLE]
Words = Annotated[str, _checked(r"(?s).*\S.*", "an explanation; say it in words")]
Count = Annotated[int, Field(strict=True, ge=1), BeforeValidator(_integer)]
Seconds = Annotated[int, Field(strict=True, ge=0), BeforeValidator(_integer)]
Processors = Annotated[
    float, Field(strict=True, gt=0, allow_inf_nan=False), BeforeValidator(_number)
]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False), BeforeValidator(_signed_number)]
ExitCode = Annotated[int, Field(strict=True, ge=0, le=255), BeforeValidator(_integer)]
Pattern = Annotated[
    str,
    AfterValidator(_pattern),
    WithJsonSchema({"title": "regular expression", "type": "string", "format": "regex"}),
]
CheckName = Annotated[
    str, _checked(r"[a-z][a-z0-9_]{0,63}", "a name of up to 64 characters in a-z, 0-9 and _")
]
MetricName = Annotated[
    str, _checked(r"[^\s\0]{1,100}", "a name without blanks of up to 100 characters")
]
Boolean = Annotated[bool, Field(strict=True), BeforeValidator(_boolean)]
Scalar = Annotated[
    str,
    BeforeValidator(_scalar),
    WithJsonSchema(
        {"title": "string, number or boolean", "type": ["string", "integer", "number", "boolean"]}
    ),
]
ParameterName = Annotated[str, _checked(r"[a-z][a-z0-9_]*", "a name in a-z, 0-9 and _")]
ModuleName = Annotated[
    str,
    _checked(
        r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*",
        "the name of a Python module, as in flash_attn or mypackage.kernels",
    ),
]
EnvironmentName = Annotated[str, _checked(r"[^=\s\0]+", "a variable name"), _VISIBLE]
AbsolutePath = Annotated[
    str,
    _checked(rf"/+(?!{_DOTS})[^\0/][^\0]*", 'an absolute path below "/" without "." and ".."'),
    _VISIBLE,
    AfterValidator(_one_spelling),
]
DevicePath = Annotated[
    str,
    _checked(rf"/dev/(?!{_DOTS})[^\0]+", 'a path below /dev without "." and ".."'),
    _VISIBLE,
]
User = Annotated[
    str,
    _checked(r"caller|image|[0-9]+:[0-9]+", '"caller", "image" or numbers such as "1000:1000"'),
    AfterValidator(_user),
]
Restart = Annotated[str, _checked(r"no|on-failure:[1-9][0-9]*", '"no" or "on-failure:N"')]
Group = Annotated[
    str,
    BeforeValidator(_group),
    WithJsonSchema(
        {"title": "group", "type": ["string", "integer"], "examples": ["path:/models", 992]}
    ),
]
GrantText = Annotated[
    str,
    AfterValidator(_grant_text),
    WithJsonSchema(
        {
            "title": "grant",
            "type": "string",
            "examples": ["ulimit:memlock=-1", "cap:SYS_PTRACE", "seccomp:+mempolicy"],
        }
    ),
]
SecretName = Annotated[
    str,
    _checked(r"[A-Za-z0-9_][A-Za-z0-9._-]*", "a file name in letters, digits, '.', '_' and '-'"),
]
SecretSource = Annotated[
    str,
    _VISIBLE,
    _checked(r"env:[^=\s\0]+|file:[^\0]+", '"env:NAME" or "file:PATH"'),
    WithJsonSchema(
        {
            "title": "source of a secret",
            "type": "string",
            "examples": ["env:HF_TOKEN", "file:~/.config/hub-token"],
        }
    ),
]
ImageText = Annotated[str, AfterValidator(_image_text)]
SelectorText = Annotated[
    str,
    AfterValidator(_selector),
    WithJsonSchema({"title": "GPU selector", "type": "string", "examples": list(_SELECTORS)}),
]
