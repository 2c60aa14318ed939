"""The grant vocabulary: how a right beyond the baseline is written. Says what a grant means, not whether it is allowed."""

import re
from dataclasses import dataclass

from rocmrun.core.closest import did_you_mean
from rocmrun.core.ids import HIGHEST_ID, is_id

# include/uapi/linux/capability.h, numbers 0 to 40 (CAP_LAST_CAP is CAP_CHECKPOINT_RESTORE since Linux 5.9).
CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
    "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
    "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
    "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD",
    "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
    "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip

# The names that Docker takes: github.com/docker/go-units, ulimit.go.
ULIMITS = (
    "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc",
    "rss", "rtprio", "rttime", "sigpending", "stack",
)  # fmt: skip

SECCOMP_RULES = ("mempolicy", "pidfd")
DEVICE_PERMISSIONS = ("r", "rw", "rwm")
UNLIMITED = -1

# Grants that are one of a few words.
_WORDS = {
    "apparmor": ("unconfined",),
    "label": ("disable",),
    "nnp": ("off",),
    "rootfs": ("rw",),
    "user": ("root",),
    "ipc": ("host", "shareable"),
    "pid": ("host",),
    "network": ("host",),
    "masks": ("off",),
}
KINDS = ("cap", "seccomp", *_WORDS, "group", "device", "ulimit", "sysctl", "tmpfs-exec")

_SYSCTL_KEY = re.compile(r"[a-z0-9_]+(?:[./][a-zA-Z0-9_*-]+)+")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ParsedGrant:
    """A grant, taken apart.

    Attributes:
        kind: The word before the first colon: one of KINDS.
        value: What is granted: "SYS_PTRACE", "unconfined", "+mempolicy", "992", "/dev/kfd",
            "memlock", "net.core.somaxconn", "/scratch".
        extra: The third part: device permissions, "soft:hard" of an ulimit, the value of a sysctl; else "".
    """

    kind: str
    value: str
    extra: str = ""

    def __str__(self) -> str:
        """Return the one spelling of this grant; parsing it gives an equal grant."""
        if self.kind == "device":
            return f"device:{self.value}:{self.extra}"
        if self.kind == "ulimit":
            soft, hard = self.limits
            return f"ulimit:{self.value}={soft if soft == hard else self.extra}"
        if self.kind == "sysctl":
            return f"sysctl:{self.value}={self.extra}"
        return f"{self.kind}:{self.value}"

    @property
    def limits(self) -> tuple[int, int]:
        """Soft and hard limit of an ulimit; -1 is unlimited."""
        soft, _, hard = self.extra.partition(":")
        return int(soft), int(hard)

    @property
    def is_seccomp_file(self) -> bool:
        """Whether this names a file with a seccomp profile."""
        return self.kind == "seccomp" and self.value != "unconfined" and self.value[0] != "+"


def parse_grant(text: str) -> ParsedGrant:
    """Parse one grant, such as "cap:SYS_PTRACE" or "ulimit:memlock=-1".

    Raises:
        ValueError: with what is wrong and, where one is near, the valid spelling.
    """
    kind, colon, rest = text.partition(":")
    if kind not in KINDS:
        near = did_you_mean(kind, KINDS) or f"; the kinds are {', '.join(KINDS)}"
        msg = f'"{kind}" is not a kind of grant{near}'
        raise ValueError(msg)
    if not colon or not rest:
        msg = f'"{text}" says nothing after "{kind}"; write {_form(kind)}'
        raise ValueError(msg)
    if kind in _WORDS:
        return _word(kind, rest)
    return _PARSERS[kind](rest)


def _form(kind: str) -> str:
    if kind in _WORDS:
        return " or ".join(f'"{kind}:{word}"' for word in _WORDS[kind])
    return f'"{_FORMS[kind]}"'


def _word(kind: str, word: str) -> ParsedGrant:
    if word not in _WORDS[kind]:
        msg = f'"{kind}:{word}" is not a grant; write {_form(kind)}'
        raise ValueError(msg)
    return ParsedGrant(kind=kind, value=word)


def _capability(name: str) -> ParsedGrant:
    if name in CAPABILITIES:
        return ParsedGrant(kind="cap", value=name)
    if name.upper() == "ALL":
        msg = '"ALL" is every capability at once; name the ones that the job needs'
        raise ValueError(msg)
    plain = name.upper().removeprefix("CAP_")
    if plain in CAPABILITIES:
        msg = f'"cap:{name}" is written "cap:{plain}"'
    else:
        msg = f'"{name}" is not a Linux capability{did_you_mean(plain, CAPABILITIES)}'
    raise ValueError(msg)


def _seccomp(value: str) -> ParsedGrant:
    rule = value.removeprefix("+")
    known = value == "unconfined" or (value.startswith("+") and rule in SECCOMP_RULES)
    # A file is told from a mistyped word by its slash or its suffix.
    if known or "/" in value or value.endswith(".json"):
        return ParsedGrant(kind="seccomp", value=value)
    words = ("unconfined", *(f"+{rule}" for rule in SECCOMP_RULES))
    near = did_you_mean(value, words) or f"; write {_form('seccomp')}"
    msg = f'"seccomp:{value}" is neither a rule nor a file{near}'
    raise ValueError(msg)


def _group(value: str) -> ParsedGrant:
    if not value.isascii() or not value.isdigit():
        msg = f'"group:{value}" is not a number; a name would be looked up in the image, where it can be another group'
        raise ValueError(msg)
    if not is_id(value):
        msg = f'"group:{value}" is no group number: the highest is {HIGHEST_ID}'
        raise ValueError(msg)
    return ParsedGrant(kind="group", value=str(int(value)))


def _device(value: str) -> ParsedGrant:
    # From the right: paths below /dev/dri/by-path hold colons.
    path, _, permissions = value.rpartition(":")
    if permissions not in DEVICE_PERMISSIONS:
        msg = f'"device:{value}" does not end in permissions; write {_form("device")}'
        raise ValueError(msg)
    if not path.startswith("/dev/") or ".." in path.split("/"):
        msg = f'"{path}" is not a path below /dev'
        raise ValueError(msg)
    return ParsedGrant(kind="device", value=path, extra=permissions)


def _ulimit(value: str) -> ParsedGrant:
    name, _, limits = value.partition("=")
    if name not in ULIMITS:
        msg = f'"{name}" is not an ulimit{did_you_mean(name, ULIMITS)}'
        raise ValueError(msg)
    match = re.fullmatch(r"(-1|[0-9]+)(?::(-1|[0-9]+))?", limits)
    if not match:
        msg = f'"ulimit:{value}" needs a number, "soft:hard" or -1 (unlimited) after "="'
        raise ValueError(msg)
    soft, hard = int(match[1]), int(match[2] or match[1])
    if hard != UNLIMITED and (soft == UNLIMITED or soft > hard):
        msg = f'"ulimit:{value}" has a soft limit above its hard limit'
        raise ValueError(msg)
    return ParsedGrant(kind="ulimit", value=name, extra=f"{soft}:{hard}")


def _sysctl(value: str) -> ParsedGrant:
    key, _, setting = value.partition("=")
    if not _SYSCTL_KEY.fullmatch(key) or not setting:
        msg = f'"sysctl:{value}" is not a sysctl; write {_form("sysctl")}'
        raise ValueError(msg)
    return ParsedGrant(kind="sysctl", value=key, extra=setting)


def _tmpfs_exec(path: str) -> ParsedGrant:
    if not path.startswith("/") or ".." in path.split("/"):
        msg = f'"{path}" is not an absolute path'
        raise ValueError(msg)
    return ParsedGrant(kind="tmpfs-exec", value=path)


_FORMS = {
    "cap": "cap:SYS_PTRACE",
    "seccomp": "seccomp:unconfined|FILE|+mempolicy|+pidfd",
    "group": "group:992",
    "device": "device:PATH:rw|rwm",
    "ulimit": "ulimit:memlock=-1",
    "sysctl": "sysctl:KEY=VALUE",
    "tmpfs-exec": "tmpfs-exec:PATH",
}
_PARSERS = {
    "cap": _capability,
    "seccomp": _seccomp,
    "group": _group,
    "device": _device,
    "ulimit": _ulimit,
    "sysctl": _sysctl,
    "tmpfs-exec": _tmpfs_exec,
}
