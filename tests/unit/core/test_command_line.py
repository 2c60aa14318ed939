"""Docker-like options become the keys of a profile, and nothing else."""

from typing import Any

import pytest

from rocmrun.core.command_line import Options, adding, parse_volume, replacing
from rocmrun.errors import UsageError


def added(options: Options) -> dict[str, Any]:
    return adding(options, directory="/here", home="/home/me")


def test_no_option_changes_nothing() -> None:
    assert replacing(Options()) == {}
    assert added(Options()) == {}


def test_options_replace_keys() -> None:
    options = Options(
        network="bridge", shm_size="8g", memory="64g", entrypoint="bash", env=("A=1", "B=", "C=x=y")
    )

    assert replacing(options) == {
        "container": {
            "network": "bridge",
            "shm_size": "8g",
            "memory": "64g",
            "entrypoint": ["bash"],
            "env": {"A": "1", "B": "", "C": "x=y"},
        }
    }


def test_an_empty_entrypoint_clears_it() -> None:
    assert replacing(Options(entrypoint="")) == {"container": {"entrypoint": []}}


def test_a_variable_without_a_value_is_the_callers() -> None:
    options = Options(env=("HF_TOKEN", "A=1"))

    assert added(options) == {"container": {"env_from": ["HF_TOKEN"]}}
    assert replacing(options) == {"container": {"env": {"A": "1"}}}


def test_a_variable_needs_a_name() -> None:
    with pytest.raises(UsageError, match='-e "=x": no variable name'):
        replacing(Options(env=("=x",)))


def test_ports_and_volumes_are_added() -> None:
    options = Options(ports=("127.0.0.1:80:80",), volumes=("/a:/b",))

    assert added(options) == {
        "container": {"ports": ["127.0.0.1:80:80"]},
        "mounts": [{"type": "bind", "source": "/a", "target": "/b", "mode": "rw"}],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a:/b", {"type": "bind", "source": "/a", "mode": "rw"}),
        ("/a:/b:ro", {"type": "bind", "source": "/a", "mode": "ro"}),
        ("/a:/b:rw", {"type": "bind", "source": "/a", "mode": "rw"}),
        ("/a:/b:ro,z", {"type": "bind", "source": "/a", "mode": "ro", "selinux": "shared"}),
        ("/a:/b:Z", {"type": "bind", "source": "/a", "mode": "rw", "selinux": "private"}),
        ("~/a:/b", {"type": "bind", "source": "/home/me/a", "mode": "rw"}),
        ("~:/b", {"type": "bind", "source": "/home/me", "mode": "rw"}),
        ("a/b:/b", {"type": "bind", "source": "/here/a/b", "mode": "rw"}),
        (".:/b", {"type": "bind", "source": "/here", "mode": "rw"}),
        ("..:/b", {"type": "bind", "source": "/", "mode": "rw"}),
        ("./x:/b:ro", {"type": "bind", "source": "/here/x", "mode": "ro"}),
        ("data:/b", {"type": "volume", "source": "data", "mode": "rw"}),
        ("my.data-1:/b:ro", {"type": "volume", "source": "my.data-1", "mode": "ro"}),
    ],
)
def test_a_volume_is_written_as_for_docker(text: str, expected: dict[str, Any]) -> None:
    """rw is the default here, as docker has it; relative paths start where the caller stands."""
    assert parse_volume(text, "/here", "/home/me") == {"target": "/b", **expected}


@pytest.mark.parametrize(
    "text",
    ["", ":", "/a", "/a:", ":/b", "/a:b", "/a:/b:xx", "/a:/b:ro,rw", "/a:/b:ro:z", "-data:/b", "/a:/b:rshared"],
)  # fmt: skip
def test_another_form_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="-v"):
        parse_volume(text, "/here", "/home/me")


@pytest.mark.parametrize(("text", "home"), [("~/a:/b", None), ("~other/a:/b", "/home/me")])
def test_a_home_that_nobody_knows_is_refused(text: str, home: str | None) -> None:
    with pytest.raises(UsageError, match="-v"):
        parse_volume(text, "/here", home)
