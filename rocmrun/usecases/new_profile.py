"""Write a first profile: on a shipped one, or from a published `docker run` line."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rocmrun.core.docker_run.as_profile import profile_from_run
from rocmrun.core.docker_run.parser import parse_docker_run
from rocmrun.core.profile.merge import ProfileFile, ProfileLayer, merge
from rocmrun.core.profile.new import NewProfile, derived_text, given_values, imported_text, parsed
from rocmrun.core.profile.parameters import missing_parameters, parameter_values, partly_filled_in
from rocmrun.core.profile.parse import find_mistakes, invalid
from rocmrun.errors import ProfileInvalid, ProfileUnwritable, UsageError
from rocmrun.system.files import make_directory, write_atomic
from rocmrun.system.profile_search import SUFFIX, ProfileSearch, is_profile_name
from rocmrun.usecases.profiles import read_merged

STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProfileRequest:
    """What the command line asks for.

    Attributes:
        parent: The profile to extend; None with *line*.
        line: A docker run line; None with *parent*.
        settings: What --set says.
        output: A file, "-" for stdout, or None for ./profiles/NAME.toml.
    """

    name: str
    search: ProfileSearch
    parent: str | None = None
    line: str | None = None
    settings: Mapping[str, str]
    model: str | None = None
    port: int | None = None
    output: str | None = None
    force: bool = False


def new_profile(request: NewProfileRequest) -> NewProfile:
    """Make the profile, check it as every profile is checked, and write it.

    Raises:
        UsageError: the name is none, the file is there already, or options do not fit.
        ProfileInvalid: what was given makes no profile.
    """
    path = destination(request)
    made = _made(request, path)
    try:
        made.text.encode()
    except UnicodeEncodeError as error:
        msg = "what was given has bytes that are no UTF-8, which a profile cannot hold"
        raise UsageError(msg) from error
    if path is not None:
        make_directory(path.parent, error=ProfileUnwritable)
        write_atomic(path, made.text, error=ProfileUnwritable)
    return made


def open_parameters(request: NewProfileRequest) -> dict[str, str]:
    """Return the parameters that have no value yet, with their help: what a person may be asked."""
    return dict(_made(request, None).missing)


def destination(request: NewProfileRequest) -> Path | None:
    """Return where the profile goes; None for stdout.

    Raises:
        UsageError: the name is no profile name, is its parent's, or the file is there already.
    """
    name = request.name
    if not is_profile_name(name):
        msg = f'"{name}" is no name for a profile: letters, digits, ".", "_" and "-"'
        raise UsageError(msg, hint="a file elsewhere: --output FILE")
    if name == request.parent:
        msg = f"profile {name} would extend itself"
        raise UsageError(msg, hint="a profile that builds on a shipped one needs a name of its own")
    if request.output == STDOUT:
        return None
    directory = request.search.working_directory
    path = directory / (request.output or f"profiles/{name}{SUFFIX}")
    if path.exists() and not request.force:
        msg = f"{path} is there already"
        raise UsageError(msg, hint="choose another name, or replace it: --force")
    return path


def _made(request: NewProfileRequest, path: Path | None) -> NewProfile:
    return _from_parent(request, path) if request.line is None else _from_line(request, path)


def _from_parent(request: NewProfileRequest, path: Path | None) -> NewProfile:
    parent = read_merged(request.parent or "", request.search)
    declared = parent.data.get("parameters", {})
    given = _given(request, declared)
    parameter_values(parent.data, given, parent.file.name)
    text = derived_text(request.name, request.parent or "", declared, given)
    layer = ProfileLayer(file=_file(request, path), data=parsed(text))
    return _checked(request, path, text, [layer, *parent.layers])


def _from_line(request: NewProfileRequest, path: Path | None) -> NewProfile:
    directory = str(request.search.working_directory)
    imported = profile_from_run(parse_docker_run(request.line or ""), directory=directory)
    declared = imported.data.get("parameters", {})
    given = _given(request, declared)
    parameter_values(imported.data, given, request.name)
    text = imported_text(request.name, imported, given)
    base = read_merged("base", request.search)
    layer = ProfileLayer(file=_file(request, path), data=parsed(text))
    made = _checked(request, path, text, [layer, *base.layers])
    return NewProfile(
        text=text,
        path=made.path,
        changed=imported.changed,
        left_out=imported.left_out,
        missing=made.missing,
        shadows=made.shadows,
    )


def _given(request: NewProfileRequest, declared: Mapping[str, object]) -> dict[str, str]:
    return given_values(
        request.settings,
        known=declared,
        model=request.model,
        port=request.port,
        directory=str(request.search.working_directory),
    )


def _file(request: NewProfileRequest, path: Path | None) -> ProfileFile:
    return ProfileFile(
        name=request.name, path=str(path or f"{request.name}{SUFFIX}"), origin="file"
    )


def _checked(
    request: NewProfileRequest, path: Path | None, text: str, layers: list[ProfileLayer]
) -> NewProfile:
    merged = merge(layers)
    values = parameter_values(merged.data, {}, request.name)
    mistakes = find_mistakes(partly_filled_in(merged.data, values))
    if mistakes:
        error = invalid(mistakes, name=request.name, file_of=merged.path_of)
        msg = f"what was given makes no profile {request.name}; nothing was written"
        raise ProfileInvalid(msg, details=error.details, hint=error.hint)
    shipped = {
        directory.path / f"{request.name}{SUFFIX}"
        for directory in request.search.directories
        if directory.origin == "shipped"
    }
    return NewProfile(
        text=text,
        path=None if path is None else str(path),
        missing=missing_parameters(merged.data, values),
        shadows=any(other.exists() and other != path for other in shipped),
    )
