"""The docker line says the same as the create request: read back by a small parser, field by field."""

import csv
import shlex
import subprocess
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given

from rocmrun.core.create_request import create_request
from rocmrun.core.docker_run.line import docker_run_arguments, docker_run_line, image_name
from rocmrun.core.plan import Plan, PlannedImage
from tests.builders import DIGEST, IMAGE_ID, SECCOMP, plan, privileges
from tests.strategies import examples, plans

SWITCHES = {"--detach", "--rm", "--interactive", "--tty", "--read-only", "--init",
            "--no-healthcheck"}  # fmt: skip
# The request that the Docker CLI makes of a line without options.
EMPTY = {"CpusetCpus": "", "CpusetMems": "", "PidMode": "", "UTSMode": "", "NanoCpus": 0,
         "Privileged": False, "AutoRemove": False}  # fmt: skip


def options(arguments: tuple[str, ...]) -> tuple[dict[str, list[str]], list[str]]:
    """Return option → values in order, and the image with what follows it."""
    assert arguments[:2] == ("docker", "run")
    found: dict[str, list[str]] = defaultdict(list)
    words = list(arguments[2:])
    while words and words[0].startswith("--"):
        name, equals, value = words.pop(0).partition("=")
        found[name].append(value if equals or name in SWITCHES else words.pop(0))
    return found, words


def requested(arguments: tuple[str, ...]) -> dict[str, Any]:
    """Return the create request that the Docker CLI makes of a line, as far as rocmrun sets it."""
    found, (image, *command) = options(arguments)
    mounts = [_mount(text) for text in found["--mount"]]
    security = [option for option in found["--security-opt"] if "systempaths" not in option]
    entrypoint = found["--entrypoint"]
    return {
        "User": found["--user"][0],
        "Env": sorted(text for text in found["--env"] if "=" in text),
        "Names": sorted(text for text in found["--env"] if "=" not in text),
        "WorkingDir": "".join(found["--workdir"]),
        "Hostname": "".join(found["--hostname"]),
        "StopTimeout": int(found["--stop-timeout"][0]),
        "OpenStdin": bool(found["--interactive"]),
        "Tty": bool(found["--tty"]),
        "Image": image,
        "Words": [*filter(None, entrypoint), *command],
        "ClearsEntrypoint": entrypoint == [""],
        "Healthcheck": _health(found),
        "HostConfig": {
            **EMPTY,
            "Binds": found["--volume"],
            "CapAdd": found["--cap-add"],
            "CapDrop": found["--cap-drop"],
            "CgroupnsMode": found["--cgroupns"][0],
            "CpusetCpus": "".join(found["--cpuset-cpus"]),
            "CpusetMems": "".join(found["--cpuset-mems"]),
            "Devices": [dict(zip(("PathOnHost", "PathInContainer", "CgroupPermissions"),
                                 text.split(":"), strict=True)) for text in found["--device"]],
            "ExtraHosts": found["--add-host"],
            "GroupAdd": found["--group-add"],
            "Init": bool(found["--init"]),
            "IpcMode": found["--ipc"][0],
            "LogConfig": {"Type": found["--log-driver"][0],
                          "Config": dict(text.split("=") for text in found["--log-opt"])},
            "Memory": int("".join(found["--memory"]) or 0),
            "MemorySwap": int("".join(found["--memory-swap"]) or 0),
            "Mounts": mounts,
            "NanoCpus": round(float("".join(found["--cpus"]) or 0) * 1e9),
            "NetworkMode": found["--network"][0],
            "PidMode": "".join(found["--pid"]),
            "PidsLimit": int(found["--pids-limit"][0]),
            "ReadonlyRootfs": bool(found["--read-only"]),
            "RestartPolicy": _restart("".join(found["--restart"])),
            "SecurityOpt": security,
            "Sysctls": dict(text.split("=") for text in found["--sysctl"]),
            "Tmpfs": dict(text.split(":") for text in found["--tmpfs"]),
            "Ulimits": [_ulimit(text) for text in found["--ulimit"]],
            **({"ShmSize": int(found["--shm-size"][0])} if found["--shm-size"] else {}),
            **({"PortBindings": _ports(found["--publish"])} if found["--publish"] else {}),
            **({"MaskedPaths": [], "ReadonlyPaths": []}
               if len(security) < len(found["--security-opt"]) else {}),
        },
    }  # fmt: skip


def _mount(text: str) -> dict[str, Any]:
    (fields,) = csv.reader([text])
    values = dict(field.partition("=")[::2] for field in fields)
    mount: dict[str, Any] = {
        "Type": values["type"],
        "Source": values["source"],
        "Target": values["target"],
        "ReadOnly": "readonly" in values,
    }
    if "bind-propagation" in values:
        mount["BindOptions"] = {"Propagation": values["bind-propagation"]}
    return mount


def _health(found: dict[str, list[str]]) -> dict[str, Any]:
    """The CLI can say a command for a shell alone; what it starts is the same."""
    if found["--no-healthcheck"]:
        return {"Test": ["NONE"]}
    numbers = {"Interval": "interval", "Timeout": "timeout", "StartPeriod": "start-period"}
    command = found["--health-cmd"]
    return {
        **({"Test": ["CMD", *shlex.split(command[0])]} if command else {}),
        **{
            name: int(found[f"--health-{option}"][0].removesuffix("s")) * 10**9
            for name, option in numbers.items()
        },
        "Retries": int(found["--health-retries"][0]),
    }


def _restart(text: str) -> dict[str, Any]:
    name, _, count = text.partition(":")
    return {"Name": name or "no", "MaximumRetryCount": int(count or 0)}


def _ulimit(text: str) -> dict[str, Any]:
    name, _, values = text.partition("=")
    soft, hard = values.split(":")
    return {"Name": name, "Soft": int(soft), "Hard": int(hard)}


def _ports(texts: list[str]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for text in texts:
        address, host_port, container_port = text.rsplit(":", 2)
        found[container_port].append({"HostIp": address.strip("[]"), "HostPort": host_port})
    return dict(found)


@examples(100)
@given(plans())
def test_the_line_says_what_the_request_says(plan: Plan) -> None:
    request = create_request(plan, role="workload", keep_log=True)

    said = requested(docker_run_arguments(plan, detach=True))

    assert said["HostConfig"] == EMPTY | request["HostConfig"]
    fields = ("User", "Env", "WorkingDir", "StopTimeout", "OpenStdin", "Tty", "Healthcheck")
    for field in fields:
        assert said[field] == request[field]
    assert said["Hostname"] == request.get("Hostname", "")
    assert said["Names"] == list(plan.env_from)
    # An entrypoint of several words cannot be said; the process that is started is the same.
    assert said["Words"] == [*request.get("Entrypoint", []), *request.get("Cmd", [])]
    assert said["ClearsEntrypoint"] == (request.get("Entrypoint") == [])


def test_the_line_is_words_that_a_shell_splits_the_same_way() -> None:
    made = plan({"container": {"env": {"A": "it's \"$HOME\" *"}, "command": ["sh", "-c", "echo '1' > /tmp/x"]}})  # fmt: skip

    assert tuple(shlex.split(docker_run_line(made))) == docker_run_arguments(made)


@pytest.mark.parametrize(
    "value",
    [
        "\x1b]0;title\x07",
        "\x1b[2Ja",
        "it's \\ \n\t\r",
        "\x7f\x9b31m",
        "\u202eabc\u2066",
        "\udcff",
        "é\x01f",
    ],
)
def test_a_terminal_obeys_nothing_of_the_line_and_bash_reads_the_same(value: str) -> None:
    made = plan({"container": {"env": {"A": value}}})
    (word,) = [word for word in docker_run_arguments(made) if word.startswith("--env=A=")]

    line = docker_run_line(made)
    printed = "docker() { printf '%s\\0' \"$@\"; }; "
    read = subprocess.run(["bash", "-c", printed + line], capture_output=True, check=True).stdout

    assert line.isprintable()
    assert word.encode("utf-8", "surrogateescape") in read.split(b"\0")


def test_every_option_of_security_can_be_said() -> None:
    grants = ("apparmor:unconfined", "label:disable", "nnp:off", "masks:off", "rootfs:rw")

    found, _ = options(docker_run_arguments(plan(privileges(*grants, "pid:host", "ipc:shareable"))))

    assert found["--security-opt"] == [
        "apparmor=unconfined",
        "label=disable",
        "systempaths=unconfined",
    ]
    assert (found["--pid"], found["--ipc"], found["--read-only"]) == (["host"], ["shareable"], [])


def test_a_seccomp_profile_by_value_is_its_file() -> None:
    """The Docker CLI wants a path where the API takes the text."""
    made = plan(privileges("seccomp:/etc/s.json"), seccomp_files={"/etc/s.json": SECCOMP})

    assert "--security-opt=seccomp=/etc/s.json " in docker_run_line(made)
    assert f"--security-opt=seccomp={SECCOMP}" in docker_run_arguments(made)


def test_secrets_are_names_alone() -> None:
    made = plan({"container": {"env_from": ["HF_TOKEN"]}})

    assert "--env=HF_TOKEN" in docker_run_arguments(made)


def test_an_address_stands_before_its_ports() -> None:
    """IPv6 in brackets, as Docker reads it."""
    ports = ["127.0.0.1:80:8080", "[::1]:81:8080/udp"]
    made = plan({"container": {"network": "bridge", "ports": ports}})

    found, _ = options(docker_run_arguments(made))

    assert found["--publish"] == ["127.0.0.1:80:8080/tcp", "[::1]:81:8080/udp"]


def test_a_foreground_run_is_removed_and_keeps_no_log() -> None:
    found, _ = options(docker_run_arguments(plan()))

    assert "--rm" in found
    assert found["--log-driver"] == ["none"]
    assert "--detach" not in found


def test_a_run_that_is_started_again_cannot_be_removed_when_it_ends() -> None:
    """The CLI refuses the two together."""
    made = plan({"container": {"restart": "on-failure:3"}})

    for detach in (False, True):
        found, _ = options(docker_run_arguments(made, detach=detach))
        assert found["--restart"] == ["on-failure:3"]
        assert "--rm" not in found
        assert ("--detach" in found) == detach


def test_nothing_is_pulled_and_the_platform_is_named() -> None:
    found, _ = options(docker_run_arguments(plan()))

    assert (found["--pull"], found["--platform"]) == (["never"], ["linux/amd64"])


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (PlannedImage(ref="docker.io/rocm/pytorch:7", digest=DIGEST), f"docker.io/rocm/pytorch@{DIGEST}"),
        (PlannedImage(ref="127.0.0.1:5055/demo:1", digest=DIGEST), f"127.0.0.1:5055/demo@{DIGEST}"),
        (PlannedImage(ref="127.0.0.1:5055/demo", digest=DIGEST), f"127.0.0.1:5055/demo@{DIGEST}"),
        (PlannedImage(ref=f"x/y@{DIGEST}", digest=DIGEST), f"x/y@{DIGEST}"),
        (PlannedImage(ref="x/y:1", image_id=IMAGE_ID, source="local"), IMAGE_ID),
        (PlannedImage(ref="x/y:1", image_id=IMAGE_ID), IMAGE_ID),
        (PlannedImage(ref="x/y:1"), "x/y:1"),
    ],
)  # fmt: skip
def test_the_image_is_what_docker_can_start_without_rocmrun(
    image: PlannedImage, expected: str
) -> None:
    assert image_name(plan().with_changes(image=image)) == expected


def test_a_source_with_a_comma_or_a_quote_is_quoted() -> None:
    made = plan({"mounts": [{"source": '/srv/a,"b"', "target": "/x"}]})

    (text,) = [text for text in options(docker_run_arguments(made))[0]["--mount"] if "/x" in text]

    assert _mount(text)["Source"] == '/srv/a,"b"'


def test_a_variable_of_the_caller_is_named_once() -> None:
    """Which of two an engine takes is not for the reader to know."""
    made = plan({"container": {"env_from": ["HOME"]}})
    found, _ = options(docker_run_arguments(made))

    assert [word for word in found["--env"] if word.startswith("HOME")] == ["HOME"]
