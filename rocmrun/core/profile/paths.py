"""Paths in a profile that may be written relative or with ~, made absolute. Looks at no file."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rocmrun.core.grants import parse_grant
from rocmrun.core.profile.image import Image
from rocmrun.core.profile.merge import MergedProfile
from rocmrun.core.profile.model import Mount, Privilege, Probe, Profile, Secret
from rocmrun.core.profile.parse import Mistake, invalid
from rocmrun.core.toml import KeyPath, key_path

_SECCOMP = "seccomp:"
_FILE = "file:"
_KEY = ("image", "verify", "key")


def absolute_path(text: str, *, directory: str, home: str | None) -> str:
    """Return the path of *text*: "~" is *home*, and a relative path starts at *directory*.

    ".." is taken out of the text, as the Docker CLI does for -v, not followed through symlinks.
    A slash at the end stays: it says that a directory is meant.

    Raises:
        ValueError: "~" without a home, or somebody else's ("~name").
    """
    first, _, rest = text.partition("/")
    if first == "~":
        if not home:
            msg = f'"{text}" needs HOME, which is not set'
            raise ValueError(msg)
        return _tidy(posixpath.join(home, rest) if rest else home)
    if first.startswith("~"):
        msg = f'"{text}" is another user\'s home; write its path'
        raise ValueError(msg)
    return _tidy(posixpath.join(directory, text))


def absolute_key(
    text: str,
    merged: MergedProfile,
    settings: Mapping[str, str],
    *,
    directory: str,
    home: str | None,
) -> str:
    """Return the path of *text*, the value of image.verify.key, by the same rules.

    Raises:
        ProfileInvalid: it has no meaning here.
    """
    paths = _Paths(merged=merged, settings=settings, directory=directory, home=home)
    found = paths.absolute(text, _KEY)
    if paths.mistakes:
        raise invalid(tuple(paths.mistakes), name=merged.file.name, file_of=merged.path_of)
    return found


def _tidy(path: str) -> str:
    tidy = posixpath.normpath(path)
    return f"{tidy}/" if path.endswith("/") and tidy != "/" else tidy


def with_absolute_paths(
    profile: Profile,
    merged: MergedProfile,
    settings: Mapping[str, str],
    *,
    directory: str,
    home: str | None,
) -> Profile:
    """Return *profile* with the sources of its binds, its seccomp files, its signer's key and its checks' files absolute.

    They start at the file that wrote them, but at *directory* where --set gave them: that path is
    the caller's, and relative to where the caller stands.

    Raises:
        ProfileInvalid: a path has no meaning here.
    """
    paths = _Paths(merged=merged, settings=settings, directory=directory, home=home)
    changes: dict[str, Any] = {
        "image": paths.image(profile.image),
        "mounts": tuple(paths.mounts(profile.mounts)),
        "secrets": tuple(paths.secrets(profile.secrets)),
        "privileges": tuple(paths.privileges(profile.privileges)),
        "probe": paths.probe(profile.probe),
        "debug": profile.debug.model_copy(
            update={"privileges": tuple(paths.grants(profile.debug.privileges))}
        ),
    }
    if paths.mistakes:
        raise invalid(tuple(paths.mistakes), name=merged.file.name, file_of=merged.path_of)
    was_set = profile.model_fields_set
    return profile.model_copy(
        update={key: value for key, value in changes.items() if key in was_set}
    )


@dataclass(kw_only=True)
class _Paths:
    """Resolves one path after the other and collects what is wrong."""

    merged: MergedProfile
    settings: Mapping[str, str]
    directory: str
    home: str | None
    mistakes: list[Mistake] = field(default_factory=list)

    def image(self, image: Image) -> Image:
        if image.verify is None or not image.verify.key:
            return image
        key = self.absolute(image.verify.key, _KEY)
        verify = image.verify.model_copy(update={"key": key})
        return image.model_copy(update={"verify": verify})

    def mounts(self, mounts: tuple[Mount, ...]) -> Iterator[Mount]:
        for index, mount in enumerate(mounts):
            if mount.type == "volume":
                yield mount
                continue
            source = self.absolute(mount.source, ("mounts", index, "source"))
            yield mount.model_copy(update={"source": source})

    def secrets(self, secrets: tuple[Secret, ...]) -> Iterator[Secret]:
        for index, secret in enumerate(secrets):
            source = secret.source
            if source.startswith(_FILE):
                place = ("secrets", index, "source")
                source = _FILE + self.absolute(source.removeprefix(_FILE), place)
            yield secret.model_copy(update={"source": source})

    def privileges(self, privileges: tuple[Privilege, ...]) -> Iterator[Privilege]:
        for index, privilege in enumerate(privileges):
            grant = self._grant(privilege.grant, ("privileges", index, "grant"))
            yield privilege.model_copy(update={"grant": grant})

    def probe(self, probe: Probe) -> Probe:
        checks = [
            check.model_copy(
                update={"file": self.absolute(check.file, ("probe", "checks", index, "file"))}
            )
            if check.file
            else check
            for index, check in enumerate(probe.checks)
        ]
        return probe.model_copy(update={"checks": tuple(checks)}) if checks else probe

    def grants(self, grants: tuple[str, ...]) -> Iterator[str]:
        for index, grant in enumerate(grants):
            yield self._grant(grant, ("debug", "privileges", index))

    def _grant(self, text: str, place: KeyPath) -> str:
        grant = parse_grant(text)
        if not grant.is_seccomp_file:
            return text
        return _SECCOMP + self.absolute(grant.value, place)

    def absolute(self, text: str, place: KeyPath) -> str:
        written: Any = self.merged.data
        for part in place:
            written = written[part]
        start = written.removeprefix(_SECCOMP).removeprefix(_FILE)
        by_caller = any(start.startswith(f"${{{name}}}") for name in self.settings)
        key = key_path(place)
        file_directory = posixpath.dirname(self.merged.path_of(key))
        try:
            return absolute_path(
                text, directory=self.directory if by_caller else file_directory, home=self.home
            )
        except ValueError as error:
            self.mistakes.append(Mistake(key=key, text=str(error)))
            return text
