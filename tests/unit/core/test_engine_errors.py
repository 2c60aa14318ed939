"""What engines say when they refuse, as they say it, and what it means."""

import pytest

from rocmrun.core.engine_errors import container_error, pull_error
from rocmrun.errors import (
    CommandNotExecutable,
    CommandNotFound,
    DevicesMissing,
    EngineFailed,
    HostNotReady,
    ImageGone,
    MountSourceInvalid,
    OutOfDisk,
    PlatformMismatch,
    PortTaken,
    RegistryDenied,
    RocmrunError,
    UsageError,
)

OCI = "OCI runtime create failed: container_linux.go:380: starting container process caused: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("driver failed programming external connectivity on endpoint x: Bind for 127.0.0.1:8000 "
         "failed: port is already allocated", PortTaken),
        ("listen tcp4 127.0.0.1:80: bind: address already in use", PortTaken),
        ('invalid mount config for type "bind": bind source path does not exist: /srv/x',
         MountSourceInvalid),
        (OCI + 'process_linux.go:545: container init caused: rootfs_linux.go:76: mounting "/a" to '
         'rootfs at "/b" caused: not a directory: unknown: Are you trying to mount a directory '
         "onto a file (or vice-versa)?", MountSourceInvalid),
        ('error gathering device information while adding custom device "/dev/kfd": no such file '
         "or directory", DevicesMissing),
        (OCI + 'exec: "nosuch": executable file not found in $PATH: unknown', CommandNotFound),
        (OCI + 'exec: "/nosuch": stat /nosuch: no such file or directory: unknown', CommandNotFound),
        (OCI + 'exec: "/etc/passwd": permission denied: unknown', CommandNotExecutable),
        (OCI + 'exec: "/sbin/docker-init": stat /sbin/docker-init: no such file or directory',
         MountSourceInvalid),
        ("mkdir /var/lib/docker/overlay2/x: no space left on device", OutOfDisk),
        (OCI + "process_linux.go:508: setting rlimits for ready process caused: error setting "
         "rlimit type 8: operation not permitted: unknown", HostNotReady),
        ('Conflict. The container name "/x" is already in use by container "ab12".', UsageError),
        ("No such image: sha256:12ab", ImageGone),
        ("image with reference x was found but does not match the specified platform: wanted "
         "linux/arm64, actual: linux/amd64", PlatformMismatch),
        ("Requested CPUs are not available - requested 0-99, available: 0-1", HostNotReady),
        ("something that nobody has seen before", EngineFailed),
    ],
)  # fmt: skip
def test_a_refused_container_has_a_name(text: str, expected: type[RocmrunError]) -> None:
    error = container_error("start the container", 500, text)

    assert type(error) is expected
    assert error.message.startswith("cannot start the container: ")


def test_what_nobody_knows_keeps_its_status() -> None:
    assert container_error("x", 500, "odd").message == "cannot x: odd (status 500)"
    assert container_error("x", None, "odd").message == "cannot x: odd"


def test_the_engines_text_is_cleaned_and_cut() -> None:
    error = container_error("x", None, "\x1b[31mred\x1b[0m\n  text " + "y" * 5000)

    assert error.message.startswith("cannot x: red text yyy")
    assert len(error.message) < 700


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("write /x: no space left on device", OutOfDisk, "the engine's disk is full"),
        ("Cannot overwrite digest sha256:ab", PlatformMismatch, "another platform"),
        ("unauthorized: authentication required", RegistryDenied, "example.com"),
    ],
)
def test_a_failed_pull_has_a_name(text: str, expected: type[RocmrunError], said: str) -> None:
    error = pull_error("example.com/x@sha256:ab", text, status=500)

    assert type(error) is expected
    assert said in error.message
    assert error.hint
