"""A seccomp filter as a value: read from Docker's format or from what a runtime is handed, made smaller, written again.

Both formats are one JSON schema apart from conditions: a Docker profile names rules that hold under a capability, an
architecture or a kernel, and an engine resolves them for each container. Here they are resolved the same way, so
that a filter says what one container may call, and no reader of it needs to know Docker's conditions.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from rocmrun.core.seccomp import RESTRICTING

ALLOW = "SCMP_ACT_ALLOW"
# What lets a call run: LOG does, and writes a line.
_RUNS = frozenset({ALLOW, "SCMP_ACT_LOG"})
_TOP = frozenset({
    "defaultAction", "defaultErrnoRet", "defaultErrno", "architectures", "archMap", "flags", "syscalls",
    "listenerPath", "listenerMetadata", "comment",
})  # fmt: skip
_RULE = frozenset({
    "name", "names", "action", "args", "errnoRet", "errno", "comment", "includes", "excludes",
})  # fmt: skip
_ARGUMENT = frozenset({"index", "value", "valueTwo", "op"})
_MAPPED = frozenset({"architecture", "subArchitectures"})
_CONDITION = frozenset({"caps", "arches", "minKernel"})
# Numbers of errno that profiles name in words (errno(3), x86_64 and arm64 alike).
_MOST_ERRNO = 4095  # MAX_ERRNO of the kernel's include/linux/err.h
_ERRNO = {"EPERM": 1, "ENOENT": 2, "EACCES": 13, "EINVAL": 22, "ENOSYS": 38}
# The platform's architecture in libseccomp's words (moby, profiles/seccomp/seccomp_linux.go).
_NATIVE = {
    "amd64": "SCMP_ARCH_X86_64",
    "arm64": "SCMP_ARCH_AARCH64",
    "ppc64le": "SCMP_ARCH_PPC64LE",
    "riscv64": "SCMP_ARCH_RISCV64",
    "s390x": "SCMP_ARCH_S390X",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRule:
    """What happens to some system calls.

    Attributes:
        args: Conditions on arguments, each as JSON names its fields.
        errno: What the calls return under an ERRNO action; None is the runtime's default, EPERM.
    """

    names: tuple[str, ...]
    action: str
    args: tuple[Mapping[str, Any], ...] = ()
    errno: int | None = None

    @property
    def lets_run(self) -> bool:
        """Whether the calls run, under the conditions of *args*."""
        return self.action in _RUNS

    def to_json(self) -> dict[str, Any]:
        """Return the rule in Docker's format."""
        found: dict[str, Any] = {"names": list(self.names), "action": self.action}
        if self.errno is not None:
            found["errnoRet"] = self.errno
        if self.args:
            found["args"] = [dict(arg) for arg in self.args]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """What a profile's conditions are about: the container that a filter is for.

    Attributes:
        capabilities: The bounding set, without "CAP_".
        architecture: As platforms spell it: "amd64".
        kernel: Its release, "6.8.0-45-generic".
    """

    capabilities: frozenset[str]
    architecture: str
    kernel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeccompFilter:
    """A filter for one kind of container."""

    default_action: str
    default_errno: int | None = None
    architectures: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    rules: tuple[FilterRule, ...] = ()

    @property
    def calls(self) -> frozenset[str]:
        """The calls that may run, some under conditions on their arguments."""
        return frozenset(name for rule in self.rules if rule.lets_run for name in rule.names)

    def without(self, calls: Iterable[str], architectures: Iterable[str] = ()) -> Self:
        """Return the filter with these calls and architectures taken out.

        Only rules that let calls run shrink. What they named falls to the default, with its errno; a rule that
        refuses with an errno of its own (clone3: ENOSYS, on which C libraries fall back) stays whole.
        """
        gone, gone_architectures = frozenset(calls), frozenset(architectures)
        rules = (
            replace(rule, names=tuple(name for name in rule.names if name not in gone))
            if rule.lets_run
            else rule
            for rule in self.rules
        )
        return replace(
            self,
            rules=tuple(rule for rule in rules if rule.names),
            architectures=tuple(a for a in self.architectures if a not in gone_architectures),
        )

    def also(self, calls: Iterable[str]) -> Self:
        """Return the filter with these calls allowed, whatever their arguments."""
        open_calls = {
            name for rule in self.rules if rule.lets_run and not rule.args for name in rule.names
        }
        new = tuple(sorted(set(calls) - open_calls))
        if not new:
            return self
        # Two answers to one call would be the runtime's to choose from.
        other = (replace(rule, names=tuple(n for n in rule.names if n not in new)) for rule in self.rules)  # fmt: skip
        rules = (*(rule for rule in other if rule.names), FilterRule(names=new, action=ALLOW))
        return replace(self, rules=rules)

    def to_json(self) -> dict[str, Any]:
        """Return the filter in Docker's format, without conditions: runtimes and Kubernetes' nodes read it too."""
        found: dict[str, Any] = {"defaultAction": self.default_action}
        if self.default_errno is not None:
            found["defaultErrnoRet"] = self.default_errno
        if self.architectures:
            found["architectures"] = list(self.architectures)
        if self.flags:
            found["flags"] = list(self.flags)
        found["syscalls"] = [rule.to_json() for rule in self.rules]
        return found


def parse_filter(data: Any, surface: Surface) -> SeccompFilter:
    """Return the filter that *data* is for a container like *surface*.

    Args:
        data: A Docker profile, or `linux.seccomp` of an OCI configuration, whose conditions are resolved.
        surface: What conditions are about.

    Raises:
        ValueError: it has a word that is not known here, and could mean anything; with the word.
    """
    _know(data, _TOP, "it")
    if data.get("listenerPath"):
        msg = "asks another process about calls (listenerPath), which nothing here can try"
        raise ValueError(msg)
    errno = _errno(data, "defaultErrnoRet", "defaultErrno")
    return SeccompFilter(
        default_action=str(data.get("defaultAction")),
        default_errno=errno,
        architectures=_architectures(data, surface),
        flags=_words(data, "flags"),
        rules=tuple(
            _rule(rule) for rule in _list(data, "syscalls") if _holds(rule, surface) and _names(rule)
        ),
    )  # fmt: skip


def _know(value: Any, known: frozenset[str], what: str) -> None:
    if not isinstance(value, dict):
        msg = f"is no seccomp profile: {what} is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004  # the text is wrong, not a caller's type
    if strange := sorted(value.keys() - known):
        msg = f"says {', '.join(strange)}, which is not known here: {what} could mean anything"
        raise ValueError(msg)


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key) or []
    if not isinstance(value, list):
        msg = f"is no seccomp profile: {key} is not a list"
        raise ValueError(msg)  # noqa: TRY004  # the text is wrong, not a caller's type
    return value


def _words(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = _list(data, key)
    if not all(isinstance(word, str) for word in value):
        msg = f"is no seccomp profile: {key} is not a list of words"
        raise ValueError(msg)
    return tuple(value)


def _architectures(data: Mapping[str, Any], surface: Surface) -> tuple[str, ...]:
    named = _words(data, "architectures")
    native = _NATIVE.get(surface.architecture, "")
    entries = _list(data, "archMap")
    for entry in entries:
        _know(entry, _MAPPED, "an architecture")
    mapped = [
        architecture
        for entry in entries
        if entry.get("architecture") == native
        for architecture in (native, *_words(entry, "subArchitectures"))
    ]
    return named or tuple(mapped)


def _names(rule: Mapping[str, Any]) -> tuple[str, ...]:
    one = rule.get("name")
    return _words(rule, "names") or _words({"name": [one] if one else []}, "name")


def _rule(rule: Mapping[str, Any]) -> FilterRule:
    action = str(rule.get("action"))
    if action == "SCMP_ACT_NOTIFY":
        msg = "asks another process about calls (SCMP_ACT_NOTIFY), which nothing here can try"
        raise ValueError(msg)
    if action not in {*RESTRICTING, *_RUNS}:
        msg = f"says {action}, which is no action that is known here"
        raise ValueError(msg)
    args = _list(rule, "args")
    for arg in args:
        _know(arg, _ARGUMENT, "a condition on an argument")
    return FilterRule(
        names=_names(rule), action=action, args=tuple(args), errno=_errno(rule, "errnoRet", "errno")
    )


def _errno(value: Mapping[str, Any], number: str, word: str) -> int | None:
    """Return an errno that stands as a number, or in the words of Podman's profiles."""
    found = value.get(number)
    if found is not None:
        if type(found) is not int or not 0 <= found <= _MOST_ERRNO:
            msg = f"is no seccomp profile: {number} is no errno"
            raise ValueError(msg)
        return found
    name = value.get(word)
    if not name:
        return None
    if not isinstance(name, str) or name not in _ERRNO:
        msg = f'names an errno "{name}" that is not known here'
        raise ValueError(msg)
    return _ERRNO[name]


def _holds(rule: Any, surface: Surface) -> bool:
    """Whether a Docker rule applies, as setupSeccomp of moby's profiles/seccomp/seccomp_linux.go decides it."""
    _know(rule, _RULE, "a rule")
    needs, bars = rule.get("includes") or {}, rule.get("excludes") or {}
    for condition in (needs, bars):
        _know(condition, _CONDITION, "a condition")
    capabilities = {f"CAP_{name}" for name in surface.capabilities}
    newer = [not c.get("minKernel") or _at_least(surface.kernel, c["minKernel"]) for c in (needs, bars)]  # fmt: skip
    barred = (
        surface.architecture in _words(bars, "arches")
        or capabilities & set(_words(bars, "caps"))
        or (bars.get("minKernel") and newer[1])
    )
    arches = _words(needs, "arches")
    return not barred and (
        newer[0]
        and (not arches or surface.architecture in arches)
        and set(_words(needs, "caps")) <= capabilities
    )


def _at_least(kernel: str, least: str) -> bool:
    found = [re.match(r"(\d{1,4})\.(\d{1,4})", str(text)) for text in (kernel, least)]
    if None in found:
        msg = f'compares kernel "{kernel}" with "{least}", which is no release'
        raise ValueError(msg)
    have, want = ((int(m[1]), int(m[2])) for m in found if m)
    return have >= want
