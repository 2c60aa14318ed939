"""The options of `docker run`, `docker create` and Podman's like: their names, and which of them take a value."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rocmrun.core.closest import did_you_mean
from rocmrun.core.docker_run.shell_words import Word, plain

# github.com/docker/cli, cli/command/container/opts.go and run.go; the last line is Podman's alone.
_VALUED = """
    add-host annotation attach blkio-weight blkio-weight-device cap-add cap-drop cgroup-parent cgroupns
    cidfile cpu-count cpu-percent cpu-period cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus
    cpuset-cpus cpuset-mems detach-keys device device-cgroup-rule device-read-bps device-read-iops
    device-write-bps device-write-iops dns dns-opt dns-option dns-search domainname entrypoint env
    env-file expose gpus group-add health-cmd health-interval health-retries health-start-interval
    health-start-period health-timeout hostname io-maxbandwidth io-maxiops ip ip6 ipc isolation
    kernel-memory label label-file link link-local-ip log-driver log-opt mac-address memory
    memory-reservation memory-swap memory-swappiness mount name net net-alias network network-alias
    oom-score-adj pid pids-limit platform publish pull restart runtime security-opt shm-size stop-signal
    stop-timeout storage-opt sysctl tmpfs ulimit user userns uts volume volume-driver volumes-from workdir
    arch authfile conmon-pidfile group-entry hostuser os passwd-entry secret systemd tz umask variant
"""
_FLAGS = """
    detach disable-content-trust help init interactive no-healthcheck oom-kill-disable privileged
    publish-all quiet read-only rm sig-proxy tty use-api-socket
    env-host no-hosts replace rmi tls-verify
"""
VALUED, FLAGS = frozenset(_VALUED.split()), frozenset(_FLAGS.split())
SHORT = {
    "a": "attach", "c": "cpu-shares", "d": "detach", "e": "env", "h": "hostname", "i": "interactive",
    "l": "label", "m": "memory", "p": "publish", "P": "publish-all", "q": "quiet", "t": "tty",
    "u": "user", "v": "volume", "w": "workdir",
}  # fmt: skip
SAME = {"net": "network", "net-alias": "network-alias", "dns-opt": "dns-option"}
# Of the program itself, before its subcommand.
GLOBAL_VALUED = frozenset({"config", "context", "host", "log-level", "runtime", "root", "url"})
GLOBAL_SHORT_VALUED = frozenset("Hcl")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOption:
    """An option as it was given.

    Attributes:
        name: The long name without dashes, aliases resolved.
        value: Its value with marked expressions; "true" or "false" for a flag.
    """

    name: str
    value: str

    @property
    def written(self) -> str:
        """The option as people write it."""
        if self.name in FLAGS:
            return f"--{self.name}" if self.value == "true" else f"--{self.name}={self.value}"
        return f"--{self.name} {plain(self.value)}"


def take_options(words: Sequence[Word]) -> tuple[list[RunOption], list[Word], list[str]]:
    """Return the options at the start of *words*, the words from the image on, and expansions between them.

    Raises:
        ValueError: an option that no engine has, or one without its value.
    """
    options: list[RunOption] = []
    expansions: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.text == "--":
            break
        if not word.text.startswith("-") or word.text == "-":
            following = next((other for other in rest if not other.is_expression), None)
            if word.is_expression and following and following.text.startswith("-"):
                # A variable that stands for options: what is in it nobody knows here.
                expansions.append(plain(word.text))
                continue
            rest.insert(0, word)
            break
        options += (
            _long(word.text, rest) if word.text.startswith("--") else _joined(word.text, rest)
        )
    return options, rest, expansions


def _long(text: str, rest: list[Word]) -> Iterator[RunOption]:
    name, equals, value = text.removeprefix("--").partition("=")
    name = SAME.get(name, name)
    if name in FLAGS:
        yield RunOption(name=name, value=value if equals else "true")
    elif name in VALUED:
        yield RunOption(name=name, value=value if equals else _value(f"--{name}", rest))
    else:
        msg = f"--{plain(name)} is no option of docker run{did_you_mean(name, sorted(VALUED | FLAGS))}"
        raise ValueError(msg)


def _joined(text: str, rest: list[Word]) -> Iterator[RunOption]:
    """Yield what letters such as -itd or -p8000:8000 stand for."""
    letters = text[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        name = SHORT.get(letter)
        if name is None:
            msg = f"-{plain(letter)} is no option of docker run"
            raise ValueError(msg)
        if name in FLAGS:
            equals = letters.startswith("=")
            yield RunOption(name=name, value=letters[1:] if equals else "true")
            letters = "" if equals else letters
            continue
        value = letters.removeprefix("=") if letters else _value(f"-{letter}", rest)
        yield RunOption(name=name, value=value)
        return


def _value(option: str, rest: list[Word]) -> str:
    if not rest:
        msg = f"{option} has no value"
        raise ValueError(msg)
    return rest.pop(0).text


def is_true(value: str) -> bool:
    """Whether a flag with *value* is on, by Go's spelling."""
    return bool(re.fullmatch(r"1|t|T|true|TRUE|True", value))
