"""Profile files: where they are looked for, and reading them. Judges nothing but whether it is TOML."""

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rocmrun
from rocmrun.core.closest import did_you_mean
from rocmrun.core.profile.merge import ProfileFile
from rocmrun.core.toml import load_toml
from rocmrun.errors import ProfileInvalid, ProfileNotFound

SUFFIX = ".toml"
SYSTEM_DIRECTORY = Path("/etc/rocmrun/profiles")

# Names go into labels, cache directories and lock files.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDirectory:
    """A directory of the search path and what it is: "--profile-dir", "project", "user", "system", "shipped"."""

    path: Path
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSearch:
    """Where profiles are looked for, first match first, and where the caller stands.

    Attributes:
        directories: The search path; those that do not exist are no error.
        working_directory: Where relative paths of the command line start.
        home: What ~ stands for, None when HOME is not set.
    """

    directories: tuple[ProfileDirectory, ...]
    working_directory: Path
    home: str | None = None

    def find(self, name: str) -> ProfileFile:
        """Return the file of profile *name*; a name with a slash or ".toml" at its end is a path.

        Raises:
            ProfileNotFound: with the closest name, and where it was looked for.
            ProfileInvalid: the path's file name is no profile name.
        """
        if is_path(name):
            return self._at_path(name)
        for directory in self.directories:
            path = directory.path / f"{name}{SUFFIX}"
            if _NAME.fullmatch(name) and _is_file(path):
                return self._file(path, directory.origin)
        names = [file.name for file in self.all()]
        msg = f'there is no profile "{name}"{did_you_mean(name, names)}'
        raise ProfileNotFound(
            msg,
            hint="see them all: rocmrun profiles list",
            details=tuple(f"looked in {directory.path}" for directory in self.directories),
        )

    def all(self) -> tuple[ProfileFile, ...]:
        """Return every profile that a name finds, sorted by name."""
        found: dict[str, ProfileFile] = {}
        for directory in self.directories:
            for path in _profiles_in(directory.path):
                found.setdefault(path.stem, self._file(path, directory.origin))
        return tuple(found[name] for name in sorted(found))

    def _at_path(self, text: str) -> ProfileFile:
        path = self.working_directory / text
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            msg = f"there is no profile file {path}"
            raise ProfileNotFound(msg, hint="a profile is a file NAME.toml") from error
        except OSError as error:
            raise _unreadable(str(path), error) from error
        if path.suffix != SUFFIX or not _NAME.fullmatch(path.stem):
            msg = (
                f"{path} is no name for a profile: letters, digits, '.', '_' and '-', then '.toml'"
            )
            raise ProfileInvalid(msg)
        return ProfileFile(name=path.stem, path=str(path.absolute()), origin="file")

    def _file(self, path: Path, origin: str) -> ProfileFile:
        return ProfileFile(
            name=path.stem,
            path=str(path.absolute()),
            origin=origin,
            shadows=self._shadowed_by(path),
        )

    def _shadowed_by(self, path: Path) -> str | None:
        for directory in self.directories:
            shipped = directory.path / path.name
            # In a checkout ./profiles is the shipped directory: the same file hides nothing.
            if directory.origin == "shipped" and _is_file(shipped) and not shipped.samefile(path):
                return str(shipped)
        return None


def default_search(
    *,
    environ: Mapping[str, str],
    working_directory: Path,
    profile_directories: Sequence[Path] = (),
    system_directory: Path = SYSTEM_DIRECTORY,
) -> ProfileSearch:
    """Return the search path: --profile-dir, ./profiles, the user's, the system's, the shipped profiles."""
    return ProfileSearch(
        directories=tuple(
            ProfileDirectory(path=working_directory / path, origin=origin)
            for origin, path in (
                *(("--profile-dir", path) for path in profile_directories),
                ("project", Path("profiles")),
                *(("user", path) for path in _user_directory(environ)),
                ("system", system_directory),
                ("shipped", shipped_directory()),
            )
        ),
        working_directory=working_directory,
        home=environ.get("HOME") or None,
    )


def shipped_directory() -> Path:
    """Return the directory of the shipped profiles: in the installed package, or at the top of a checkout."""
    package = Path(rocmrun.__file__).parent
    installed = package / "profiles"
    return installed if installed.is_dir() else package.parent / "profiles"


def shipped_texts() -> tuple[str, ...]:
    """Return the text of every shipped profile, by name."""
    return tuple(path.read_text(encoding="utf-8") for path in _profiles_in(shipped_directory()))


def is_path(name: str) -> bool:
    """Whether *name* names a file rather than a profile of the search path."""
    return "/" in name or name.endswith(SUFFIX)


def is_profile_name(name: str) -> bool:
    """Whether a profile can be called *name*."""
    return _NAME.fullmatch(name) is not None


def read_profile(file: ProfileFile) -> dict[str, Any]:
    """Return the values in *file*.

    Raises:
        ProfileInvalid: it cannot be read, or is not TOML.
    """
    try:
        return load_toml(_content(file.path).decode())
    except OSError as error:
        raise _unreadable(file.path, error) from error
    except UnicodeDecodeError as error:
        msg = f"profile {file.path} is not TOML: byte {error.start} is not UTF-8"
        raise ProfileInvalid(msg) from error
    except ValueError as error:
        msg = f"profile {file.path} {error}"
        raise ProfileInvalid(msg) from error


def _content(path: str) -> bytes:
    # Without O_NONBLOCK the open of a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return file.read()


def _unreadable(path: str, error: OSError) -> ProfileInvalid:
    return ProfileInvalid(f"profile {path} cannot be read: {error.strerror}")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False  # a directory on the way that may not be searched


def _profiles_in(directory: Path) -> Iterator[Path]:
    try:
        yield from (path for path in sorted(directory.glob(f"*{SUFFIX}")) if _is_file(path))
    except OSError:
        return  # a directory that may not be read offers no profiles


def _user_directory(environ: Mapping[str, str]) -> Iterator[Path]:
    configured = environ.get("XDG_CONFIG_HOME", "")
    # The XDG base directory specification: a relative path is invalid and ignored.
    if configured.startswith("/"):
        yield Path(configured) / "rocmrun" / "profiles"
    elif environ.get("HOME"):
        yield Path(environ["HOME"]) / ".config" / "rocmrun" / "profiles"
