"""A published docker run line on the baseline: what is kept, what changes its form, and what is left out and why."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmrun.core.docker_run.as_profile import ImportedRun, profile_from_run
from rocmrun.core.docker_run.parser import parse_docker_run
from rocmrun.core.docker_run.reasons import why_no_option
from rocmrun.core.profile.new import imported_text
from rocmrun.core.profile.parameters import filled_in
from rocmrun.core.profile.parse import find_mistakes
from rocmrun.errors import RocmrunError
from tests.builders import granted, host, plan
from tests.unit.core.docker_run.recipes import RECIPES, Recipe
from tests.unit.core.docker_run.test_parser import collected


def imported(options: str, *, image: str = "x/y:1.0", command: str = "") -> ImportedRun:
    """Return what a line with *options* becomes, read in /srv/here."""
    return profile_from_run(
        parse_docker_run(f"docker run {options} {image} {command}"), directory="/srv/here"
    )


USUAL = {"device", "env-from", "group", "mount", "network", "port", "restart", "shm", "tmpfs", "tmpfs-exec", "ulimit"}  # fmt: skip


def kinds_of_rights(data: Mapping[str, Any]) -> set[str]:
    """Return the kinds of grants of a profile's plan; its parameters stand for paths and a number."""
    values = {
        name: "7" if "port" in name else f"/srv/{name}" for name in data.get("parameters", {})
    }
    values |= {name: "example" for name in values if f"${{{name}}}" in data["image"]["ref"]}
    filled = filled_in({key: value for key, value in data.items() if key != "extends"}, values)
    last = max(
        (int(n) for text in data["gpus"]["select"] for n in re.findall(r"index:(\d+)", text)),
        default=0,
    )
    return {what.partition(":")[0] for what in granted(plan(filled, host=host(last + 1)))}


def mistakes(data: Any) -> tuple[Any, ...]:
    """Return what is wrong with a profile, its parent aside."""
    return find_mistakes({key: value for key, value in data.items() if key != "extends"})


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_published_line_becomes_a_profile(recipe: Recipe) -> None:
    """It has no mistakes, no privilege, and no value of a secret."""
    found = profile_from_run(parse_docker_run(recipe.text), directory="/srv/here")

    assert mistakes(found.data) == ()
    assert "privileges" not in found.data


def test_every_collected_line_becomes_a_profile() -> None:
    """And a plan on a host with eight GPUs, whose only rights are the baseline's, mounts, ports and secrets."""
    for recipe in collected():
        found = profile_from_run(parse_docker_run(recipe["text"]), directory="/srv/here")
        assert (recipe["id"], ()) == (recipe["id"], mistakes(found.data))
        assert (recipe["id"], set()) == (recipe["id"], kinds_of_rights(found.data) - USUAL)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_published_line_becomes_a_plan(recipe: Recipe) -> None:
    """Nothing of what the line over-grants is among its rights."""
    found = profile_from_run(parse_docker_run(recipe.text), directory="/srv/here")

    assert kinds_of_rights(found.data) <= USUAL


@pytest.mark.parametrize(
    ("options", "select"),
    [
        ("--device /dev/kfd --device /dev/dri", ["all"]),
        ("--device=/dev/kfd --device=/dev/dri/", ["all"]),
        ("--device /dev/kfd --device /dev/dri/renderD129", ["render:129"]),
        ("--device /dev/kfd -v /dev/dri:/dev/dri", ["all"]),
        ("--device amd.com/gpu=all", ["all"]),
        ("--runtime=amd -e AMD_VISIBLE_DEVICES=0-1,8", ["index:0", "index:1", "index:8"]),
        ("--device /dev/kfd --device /dev/dri -e HIP_VISIBLE_DEVICES=1", ["index:1"]),
        ("""--gpus '"device=1,2"'""", ["index:1", "index:2"]),
        ("--gpus all", ["all"]),
        ("--gpus 2", ["index:0", "index:1"]),
        ("", ["none"]),
    ],
)
def test_devices_become_a_selection(options: str, select: list[str]) -> None:
    """Nodes are never passed by name: the selection finds them, their groups and nothing else."""
    found = imported(options)

    assert select == found.data["gpus"]["select"]
    assert "devices" not in found.data
    assert ("cpu" if select == ["none"] else None) == found.data.get("accelerator")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--privileged", "never"),
        ("--group-add video", "looked up in the image"),
        ("--cap-add SYS_PTRACE", "debuggers"),
        ("--cap-add=sys_nice", "mempolicy"),
        ("--security-opt seccomp=unconfined", "mempolicy"),
        ("--security-opt label=disable", "SELinux"),
        ("--ipc=host", "shared memory"),
        ("--pid host", "every process"),
        ("--network=host", "bridge"),
        ("--user root", "root inside"),
        ("--user jenkins", "looked up in the image"),
        ("--ulimit memlock=-1", "ulimit:memlock=-1"),
        ("--device /dev/infiniband", "rdma-train"),
        ("--device /dev/mem", "never"),
        ("--device /dev/dri/card1", "displays"),
        ("--restart always", "systemd"),
        ("--env-file x", "container.env"),
        ("-v /var/run/docker.sock:/var/run/docker.sock", "root on this host"),
        ("-v /:/host", "whole host"),
        ("-v $HOME:$HOME", "whole home"),
        ("-v /home/:/work", "whole home"),
        ("-v ~/.ssh:/root/.ssh", "keys"),
        ("-v /sys:/sys:ro", "host's own"),
        ("-v /srv/a:/data -v /srv/b:/data/b", "inside /data"),
        ("-p 8000-8010:8000-8010", "range"),
        ("-w /root", "only root"),
    ],
)
def test_what_is_left_out_is_named_with_its_reason(options: str, reason: str) -> None:
    """Each with the narrower way where there is one."""
    found = imported(options)

    assert any(reason in item.reason for item in found.left_out), found.left_out


@pytest.mark.parametrize(
    ("options", "port"),
    [
        ("-p 8000:8000", "127.0.0.1:8000:8000"),
        ("-p 8000", "127.0.0.1:8000:8000"),
        ("-p 0.0.0.0:80:8000", "0.0.0.0:80:8000"),
        ("-p [::1]:80:8000", "[::1]:80:8000"),
        ("-p 53:53/udp", "127.0.0.1:53:53/udp"),
        ("-p 80:80/tcp", "127.0.0.1:80:80"),
        ('-p "$GPU_PORT":5000', "127.0.0.1:${gpu_port}:5000"),
    ],
)
def test_a_port_without_an_address_is_for_this_machine(options: str, port: str) -> None:
    """An address that is written out stays."""
    found = imported(options)

    assert [port] == found.data["container"]["ports"]
    assert found.data["container"]["network"] == "bridge"
    assert any("whole network" in sentence for sentence in found.changed) == ("0.0.0.0" not in port and "[" not in port)  # fmt: skip


@pytest.mark.parametrize(
    "options",
    ["-e HF_TOKEN=hf_secret", "-e HF_TOKEN=$HF_TOKEN", "-e HF_TOKEN", "--env HF_TOKEN=<s>"],
)
def test_a_secret_comes_from_the_environment(options: str) -> None:
    """Its value is written nowhere."""
    found = imported(options)

    assert found.data["container"]["env_from"] == ["HF_TOKEN"]
    assert "hf_secret" not in str(found)


def test_a_secret_in_the_command_is_left_out() -> None:
    """Everybody on the host can read a command; a parameter would only move it to another one."""
    found = imported("", command="serve --api-key=k-123 --hf-token t-456 --max-tokens 7")

    assert found.data["container"]["command"] == ["serve", "--max-tokens", "7"]
    assert [item.what for item in found.left_out][-2:] == ["--api-key", "--hf-token"]
    assert "k-123" not in str(found)
    assert "t-456" not in str(found)


@pytest.mark.parametrize(
    ("options", "mount"),
    [
        ("-v ./x:/x", {"source": "/srv/here/x", "target": "/x", "mode": "rw"}),
        ("-v /srv/m:/m:ro", {"source": "/srv/m", "target": "/m"}),
        ("-v $HOME/m:/m", {"source": "~/m", "target": "/m", "mode": "rw"}),
        ("-v $(pwd)/m:/m", {"source": "${pwd}/m", "target": "/m", "mode": "rw"}),
        ("-v <path to it>:/m", {"source": "${path_to_it}", "target": "/m", "mode": "rw"}),
        ("-v data:/m:z", {"type": "volume", "source": "data", "target": "/m", "mode": "rw", "selinux": "shared"}),
        ("--mount type=bind,src=/a,dst=/b,readonly", {"source": "/a", "target": "/b"}),
        ("-v o:/root/.ollama", {"type": "volume", "source": "o", "target": "/home/rocmrun/.ollama", "mode": "rw"}),
        ("-v /c:/root/.cache/huggingface", {"source": "/c", "target": "/huggingface", "mode": "rw"}),
    ],
)  # fmt: skip
def test_mounts_keep_their_meaning(options: str, mount: dict[str, str]) -> None:
    """Relative sources start where the caller stands; expressions become parameters; /root is closed."""
    assert [mount] == imported(options).data["mounts"]


def test_a_tmpfs_is_kept() -> None:
    """With a size, which a tmpfs of a profile must have."""
    found = imported("--mount type=tmpfs,target=/cache,tmpfs-size=100m --tmpfs /scratch")

    assert found.data["container"]["tmpfs"] == {"/cache": "100m", "/scratch": "1GiB"}


def test_limits_and_settings_are_kept() -> None:
    """Whatever the baseline has a key for."""
    found = imported(
        "--shm-size 16G --memory 32G --cpus 1.5 --pids-limit 100 --stop-timeout 30 --user 7:8 -w /app"
        ' --entrypoint "" --platform linux/arm64 --restart on-failure:3 -e A="b c"',
        command="serve",
    )

    assert found.data["container"] == {
        "shm_size": "16G", "memory": "32G", "cpus": 1.5, "pids": 100, "stop_timeout": 30, "user": "7:8",
        "workdir": "/app", "entrypoint": [], "restart": "on-failure:3", "env": {"A": "b c"}, "command": ["serve"],
    }  # fmt: skip
    assert found.data["image"]["platform"] == "linux/arm64"


@pytest.mark.parametrize(
    ("image", "ref"),
    [
        ("rocm/vllm:v1.2", "docker.io/rocm/vllm:v1.2"),
        ("x/y:<tag>", "x/y:${tag}"),
        ("...", "${image}"),
        ("", "${image}"),
        ("ghcr.io/a/b@latest", "${image}"),
    ],
)
def test_an_image_that_is_not_one_is_a_parameter(image: str, ref: str) -> None:
    """And a placeholder in it is one too."""
    assert ref == imported("", image=image).data["image"]["ref"]


def test_a_moving_tag_is_said() -> None:
    """The lock pins what it names on the day of the lock."""
    assert any("moves" in said for said in imported("", image="x/y:latest").changed)
    assert not any("moves" in said for said in imported("", image="x/y:v1.2.3").changed)


@pytest.mark.parametrize(
    ("options", "command", "said"),
    [
        ("-it", "", True),
        ("-i -t", "/bin/bash", True),
        ("-it", "--model /m", False),
        ("-it", "python3 train.py", False),
        ("-d", "", False),
    ],
)
def test_a_shell_needs_its_terminal_at_the_launch(options: str, command: str, said: bool) -> None:  # noqa: FBT001
    found = imported(options, command=command)

    assert any("rocmrun launch -it" in each for each in found.changed) == said


def test_who_may_write_a_volume_is_said_before_a_launch_refuses_it() -> None:
    said = "volume ollama is mostly root's"

    assert any(said in each for each in imported("-v ollama:/root/.ollama").changed)
    assert not imported("-v ollama:/data:ro").changed
    assert not imported("-v /srv/ollama:/data").changed


@pytest.mark.parametrize(
    ("options", "container"),
    [
        ("--network mynet", {"network": "bridge"}),
        ("--network none", {}),
        ("--network bridge", {"network": "bridge"}),
        ("--memory 0 --pids-limit -1 --restart no --ipc private", {}),
        ("--security-opt no-new-privileges --cpus $CPUS", {"cpus": "${cpus}"}),
        ("--user $(id -u):$(id -g)", {}),
        ("-e HIP_VISIBLE_DEVICES=all -w /", {}),
        ("-v /data --device /dev/kfd --init", {}),
    ],
)
def test_what_is_no_setting_leaves_none(options: str, container: dict[str, str]) -> None:
    """Unlimited is no limit to keep, a nameless volume no mount, and the caller is the default."""
    assert container == imported(options).data.get("container", {})


def test_two_expressions_of_one_name_are_two_parameters() -> None:
    """$PWD and $(pwd) need not be the same; what was quoted by backticks is one, too."""
    found = imported("-v $PWD/a:/a -v $(pwd)/b:/b -e X=`date`")

    assert list(found.data["parameters"]) == ["date", "pwd", "pwd_2"]
    assert found.data["container"]["env"] == {"X": "${date}"}


def test_a_mount_that_docker_would_refuse_is_read_as_meant() -> None:
    """A line break in it is no reason to lose the rest."""
    found = imported('--mount "type=bind,source=/a,target=/b\n,readonly"')

    assert [mount["source"] for mount in found.data["mounts"]] == ["/a"]


def test_a_missed_option_says_where_it_went() -> None:
    """For those who bring docker's options to rocmrun; aliases count, and other programs' options do not."""
    assert "never" in (why_no_option("--privileged") or "")
    assert why_no_option("--no-such") is None


@given(
    recipe=st.sampled_from(RECIPES),
    place=st.floats(0, 1),
    cut=st.integers(0, 8),
    put=st.sampled_from(
        [
            "",
            "'",
            '"',
            "\\",
            "$(",
            "${",
            "<",
            ">",
            "|",
            "\n",
            "#",
            "\0",
            "\x1b",
            "--mount ",
            "-v ",
            "-p ",
        ]
    ),
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_damaged_line_is_a_profile_or_one_error(
    recipe: Recipe, place: float, cut: int, put: str
) -> None:
    """Whatever somebody pasted; what is written is TOML, and comments hold what they should."""
    at = int(place * len(recipe.text))
    text = recipe.text[:at] + put + recipe.text[at + cut :]
    try:
        found = profile_from_run(parse_docker_run(text), directory="/srv/here")
    except RocmrunError:
        return

    values = tomllib.loads(imported_text("x", found, {}))
    assert values["extends"] == "base"


def test_a_secret_of_known_form_is_written_nowhere() -> None:
    """Not under a harmless name, not in a shell's line, not in a comment on what was left out."""
    secret = "hf_" + "s3cret" * 5
    made = imported(
        f"-e HUB={secret} --health-cmd 'curl -H \"Authorization: Bearer {secret}\"'",
        command=f"bash -c 'serve --api-key={secret} --port 1'",
    )
    text = imported_text("x", made, {})

    assert "s3cret" not in text
    assert made.data["container"]["env_from"] == ["HUB"]
    assert made.data["container"]["command"][2] == "serve --api-key=<secret> --port 1"
    assert any("the command has a secret" in sentence for sentence in made.changed)


def test_the_size_of_a_tmpfs_may_be_an_expression() -> None:
    """It becomes a parameter like every other."""
    assert imported("--tmpfs /s:size=$SIZE").data["container"]["tmpfs"] == {"/s": "${size}"}
