"""From text to evidence: what a log, a listing and `key: value` lines say, as facts."""

import ast
import itertools
import json
import re
import shlex
from collections.abc import Iterator

from rocmrun.core.diagnosis.body import Body, Quotes, body_of
from rocmrun.core.diagnosis.evidence import Evidence, IdRow, Opened, Value
from rocmrun.core.diagnosis.log_text import Line, line_of, lines_of
from rocmrun.core.diagnosis.node_listings import listed_nodes, nodes_of_keys
from rocmrun.core.diagnosis.retelling import devices_of, set_aside, tells_what_helped
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts

# Never the cause of anything: kept aside, and told only when nothing else is there.
NOISE = {
    "libdrm-ids-warning": r"amdgpu\.ids\b|libdrm_amdgpu\.so\b[^\n]{0,80}(?:cannot open|no such file)|fail(?:ed)? to open libdrm_amdgpu",
    "numa-balancing": r"numa (?:auto )?balancing\W{1,3}(?:is )?(?:enabled|on\b|not (?:off|disabled))|automatic numa balancing[^\n]{0,30}\b(?:enabled|on)\b|\btask_numa_work\b|numa_balancing(?:=0|\W{1,4}1\b)",
    "miopen-workspace": r"\[isenoughworkspace\]",
}
# What a launch made of a log is no evidence of its own; nor is what a configure step asks of a system,
# a test that passed, or a request that was answered.
_NO_EVIDENCE = re.compile(
    r"^\s*(?:hint: )?likely cause: .*: rocmrun explain [\w-]+\s*$"
    r"|^-- (?:Looking for|Performing Test|Check if|Checking) .* - (?:not found|found|[Ff]ailed|Success|yes|no|done|works)$"
    r"|^checking (?:for|whether|if|how) .*\.\.\. ?(?:\([a-z]+\) )?(?:no|yes|none)$"
    r"|^(?:\[gw\d+\] \[ *\d+%\] (?:PASSED|XFAIL) \S+\.py::|\S+\.py::\S.* (?:PASSED|XFAIL)\b)"
    r"|\"(?:GET|POST|PUT|HEAD|PATCH|DELETE|OPTIONS) \S+ HTTP/[\d.]+\"? [23]\d\d\b"
)
ERRNO = (
    ("EACCES", r"permission denied|eacces|errno[ =:]{1,3}13\b"),
    ("EPERM", r"operation not permitted|eperm|errno[ =:]{1,3}1\b"),
    ("ENXIO", r"no such device or address|\benxio\b|errno[ =:]{1,3}6\b"),
    ("ENOENT", r"no such file|enoent|errno[ =:]{1,3}2\b|does not exist|not found"),
    ("EINVAL", r"invalid argument|einval|errno[ =:]{1,3}22\b"),
    ("ENOMEM", r"cannot allocate memory|out of memory|enomem|errno[ =:]{1,3}12\b"),
    ("ENODEV", r"no such device|enodev|errno[ =:]{1,3}19\b"),
    ("EBUSY", r"device or resource busy|ebusy|errno[ =:]{1,3}16\b"),
)
_NODE_PATH = r"/dev/(?:kfd|dxg|dri/renderd\d{1,6}|dri/card\d{1,4}|dri)\b"
# Reading kfd answers EINVAL on a healthy machine; the daemon speaks of its own side; listings are no opens.
_NO_OPEN = re.compile(
    r"\b(?:cat|head|dd|hexdump|less|od|xxd): |gathering device information|could not select device|failed to create (?:task|shim)|failed to inject"
)
_KEY_VALUE = re.compile(r"^([A-Za-z_][\w.=+%-]{0,59})\s?: (.{1,4000})$")
_ENVIRONMENT_KEYS = re.compile(r"(?:^|[._])(?:image_)?env(?:ironment)?(?:$|[._])|variables")
_VARIABLE = re.compile(
    r"(?:^|[\s;\"'])(?:export |set |-e |--env[ =]|env )?\"?'?([A-Z][A-Z0-9_]{3,60})=(\"[^\"]{0,200}\"|'[^']{0,200}'|[^\s\"';&|]{0,200})"
)
_GFX = r"\bgfx(?:9(?:0[0-9a-c]|4[0-2]|50)|1[0-2][0-9a-f]{2}|[78]0[0-9])\b"


def read_text(
    text: str, *, host: HostFacts | None = None, engine: EngineFacts | None = None
) -> Evidence:
    """Return what *text* says; facts of a *host* and an *engine* may stand beside it."""
    lines, noise = _without_noise(lines_of(text))
    told, rest = _told(lines)
    return _evidence(rest, told, noise, host, engine)


def _evidence(
    lines: tuple[Line, ...],
    values: tuple[Value, ...],
    noise: dict[str, Quotes],
    host: HostFacts | None,
    engine: EngineFacts | None,
) -> Evidence:
    log = body_of(lines)
    told = body_of(tuple(_as_line(value) for value in values if not value.remedy))
    remedies = (
        *(_as_line(value) for value in values if value.remedy),
        *(line for line in lines if tells_what_helped(line.lower)),
    )
    return Evidence(
        log=log,
        told=told,
        remedies=body_of(tuple(sorted(remedies, key=lambda line: line.number))),
        noise=noise,
        values=values,
        opened=(*_opened(log, told), *_opened_as_told(values)),
        nodes=(*listed_nodes(log, told), *nodes_of_keys(log, told)),
        flags=tuple(_flags(lines, values)),
        env=dict(_environment(lines, values)),
        targets=tuple(
            (match[0], line) for body in (log, told) for match, line in body.matches(_GFX)
        ),
        memberships=tuple(_groups(log, told, values)),
        id_rows=tuple(_uid_map(log, told)),
        host=host,
        engine=engine,
    )


def _as_line(value: Value) -> Line:
    text = f"{value.key}: {value.text}"
    return Line(value.line.number, text, line_of(0, text).lower)


def _without_noise(lines: tuple[Line, ...]) -> tuple[tuple[Line, ...], dict[str, Quotes]]:
    kept: list[Line] = []
    noise: dict[str, list[Line]] = {}
    patterns = [(kind, re.compile(pattern)) for kind, pattern in NOISE.items()]
    for line in lines:
        if _NO_EVIDENCE.search(line.text):
            continue
        kind = next((kind for kind, pattern in patterns if pattern.search(line.lower)), None)
        if kind is None:
            kept.append(line)
        else:
            noise.setdefault(kind, []).append(line)
    return tuple(kept), {kind: tuple(found[:3]) for kind, found in noise.items()}


def _told(lines: tuple[Line, ...]) -> tuple[tuple[Value, ...], tuple[Line, ...]]:
    """Return the facts of `key: value` lines, and all other lines.

    A line of that form whose key is a word of a program ("mbind: …", "RuntimeError: …") stays in the log.
    """
    values: list[Value] = []
    rest: list[Line] = []
    for line in lines:
        whole = _parsed(line.text) if line.text.startswith("{") else None
        if isinstance(whole, dict):
            for key, value in list(whole.items())[:200]:
                values.extend(_flattened(str(key), value, line))
            continue
        match = _KEY_VALUE.match(line.text)
        if match is None or not _is_fact(match[1], match[2]):
            rest.append(line)
            continue
        flat = _flattened(match[1], _parsed(match[2]), line)
        values.extend(flat)
    return tuple(values), tuple(rest)


# A key that some program prints as its own name or as the class of an error, and no fact.
_PROGRAMS = re.compile(
    r"^(?:[A-Z]\w*(?:Error|Exception|Warning|Interrupt)|Error|ERROR|Warning|WARNING|Fatal|FATAL|[\w.]+\.\w*(?:Error|Exception|Warning)|docker|podman|error|err|fatal|warning|warn|info|debug|note|tee|ls|cat|cp|mv|mkdir|touch|rm|chmod|chown|ln|install|stat|bash|sh|zsh|fork|sudo|su|mbind|set_mempolicy|get_mempolicy|python3?|pip3?|modprobe|insmod|dmesg|kernel|amdgpu|kfd|ld|ld\.so|gcc|clang|nerdctl|kubectl|apptainer|singularity|W|E|I|F|perf_event_open|open|openat|stderr|stdout|Reason|rocminfo|clinfo|apt|dnf|yum|rsync|tar|curl|wget|git|make|cmake|ninja|dev\d+|mp\d+|lxc\.\S+|Segmentation|Aborted|Traceback|[\w.+-]+\.so(?:\.\d+)*)$"
)


def _is_fact(key: str, value: str) -> bool:
    return not _PROGRAMS.match(key) and not value.startswith("error:")


def _parsed(text: str) -> object:
    """Return the JSON or Python value that *text* is, or *text*."""
    if text[:1] not in "[{\"'":
        return text
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def _flattened(key: str, value: object, line: Line, *, remedy: bool = False) -> Iterator[Value]:
    remedy = remedy or set_aside(key)
    if isinstance(value, dict):
        for inner, held in list(value.items())[:200]:
            yield from _flattened(f"{key}.{inner}", held, line, remedy=remedy)
    elif isinstance(value, list | tuple) and value:
        for held in value[:200]:
            yield from _flattened(key, held, line, remedy=remedy)
    else:
        yield Value(key=key, text=str(value), line=line, remedy=remedy)


def _opened(*bodies: Body) -> Iterator[Opened]:
    seen = set()
    for body in bodies:
        for match, line in body.matches(_NODE_PATH):
            if _NO_OPEN.search(line.lower):
                continue
            errno = next((name for name, words in ERRNO if re.search(words, line.lower)), None)
            if errno and (match[0], errno) not in seen:
                seen.add((match[0], errno))
                yield Opened(path=match[0], errno=errno, line=line)


def _opened_as_told(values: tuple[Value, ...]) -> Iterator[Opened]:
    """Yield the open that two facts tell together: the node as `path: …` and its end as `errno: …`."""
    told = [(value.key.lower().rpartition(".")[2], value) for value in values if not value.remedy]
    paths = [
        match[0]
        for key, value in told
        if key in {"path", "node", "device", "file"}
        and (match := re.search(_NODE_PATH, value.text.lower()))
    ]
    ends = [(value.text.lower().strip(), value.line) for key, value in told if key == "errno"]
    for path, (end, line) in itertools.product(paths[:1], ends[:1]):
        for name, words in ERRNO:
            if re.search(words, f"errno {end} {end}"):
                yield Opened(path=path, errno=name, line=line)
                break


def _flags(lines: tuple[Line, ...], values: tuple[Value, ...]) -> Iterator[tuple[str, Line]]:
    for value in values:
        if not value.remedy and re.search(
            r"flag|command|run_line|options|args|compose|volumes?$|mounts?$", value.key.lower()
        ):
            for flag in _joined(value.text):
                yield flag, value.line
        for path in () if value.remedy else devices_of(value.key, value.text):
            yield f"--device={path}", value.line
    for line in lines:
        if re.search(
            r"\b(?:docker|podman|nerdctl|apptainer|singularity)\b.{0,40}\b(?:run|create|exec)\b|^\s*-{1,2}(?:device|group-add|gpus|security-opt|cap-)",
            line.lower,
        ):
            for flag in _joined(line.text):
                yield flag, line


def _joined(text: str) -> Iterator[str]:
    """Yield options, each with its value: "--group-add video" as "--group-add=video"."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    for word, following in zip(words, [*words[1:], "-"], strict=True):
        if word.startswith("-"):
            yield word if "=" in word or following.startswith("-") else f"{word}={following}"


def _environment(
    lines: tuple[Line, ...], values: tuple[Value, ...]
) -> Iterator[tuple[str, tuple[str, Line]]]:
    for line in lines:
        for found in _VARIABLE.finditer(line.text):
            yield found[1], (found[2].strip("\"'"), line)
    for value in values:
        if value.remedy:
            continue
        name = value.key.rpartition(".")[2]
        if _ENVIRONMENT_KEYS.search(value.key.lower()) and name.isupper():
            yield name, (value.text, value.line)
        elif re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", value.key):
            yield value.key, (value.text, value.line)
        for found in _VARIABLE.finditer(value.text):
            yield found[1], (found[2].strip("\"'"), value.line)


def _groups(log: Body, told: Body, values: tuple[Value, ...]) -> Iterator[tuple[str, Line]]:
    for value in values:
        if re.search(
            r"(?:^|_|\.)(?:groups|gids|group_ids)(?:_in\w*)?$", value.key.lower()
        ) and not value.key.lower().startswith("host"):
            for group in re.findall(r"[\w-]+", value.text.lower()):
                yield group, value.line
    own = r"^(?!host|on_host|outside)[^\n]{0,200}\bgroups=([^\n]{1,300})"
    for match, line in (*log.matches(own), *told.matches(own)):
        for group in re.findall(r"\d+|(?<=\()[\w-]+", match[1]):
            yield group, line
    for match, line in log.matches(r"^groups:\s*([\d \t]{1,200})$"):
        for group in match[1].split():
            yield group, line


def _uid_map(*bodies: Body) -> Iterator[tuple[IdRow, Line]]:
    for body in bodies:
        for match, line in body.matches(
            r"^(?:\s*(?:uid_map|gid_map)\W{1,4})?\s*(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s*$"
        ):
            if "_map" in line.lower or int(match[3]) > 1:
                yield (int(match[1]), int(match[2]), int(match[3])), line
