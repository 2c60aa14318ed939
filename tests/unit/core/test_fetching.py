"""What a download gets of a profile: a network, one writable mount, a token, and nothing else."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.fetching import DOWNLOADER, Download, directory_below, fetch_mount, fetch_profile
from rocmrun.core.profile.model import Profile
from rocmrun.core.profile.parse import parse_profile
from rocmrun.errors import ProfileInvalid, UsageError
from tests.builders import granted, host, plan

SERVER: dict[str, Any] = {
    "image": {"ref": "example.com/rocm/torch:1"},
    "container": {
        "network": "bridge",
        "ports": ["127.0.0.1:8000:8000"],
        "command": ["serve"],
        "env": {"HF_HUB_OFFLINE": "1", "A": "1"},
        "groups": ["path:/model", "path:/data", "7"],
        "restart": "on-failure:3",
    },
    "mounts": [{"source": "/srv/m", "target": "/model"}, {"source": "/srv/d", "target": "/data"}],
    "devices": [{"path": "/dev/kfd", "reason": "x"}],
    "privileges": [{"grant": "cap:SYS_PTRACE", "reason": "x"}],
    "fetch": {"target": "/model/weights"},
}
QWEN = Download(repo="Qwen/Qwen3", revision="v1", include=("*.json",), exclude=("*.bin", "*.pt"))


def fetched(changes: dict[str, Any] | None = None, environment: Any = None) -> Profile:
    """Return the profile of a download."""
    profile = parse_profile({**SERVER, **(changes or {})})
    return fetch_profile(profile, "job", QWEN, is_set=environment or {})


def test_a_download_has_few_rights() -> None:
    """No GPU, no port, no privilege; what it may write is where the download goes."""
    data = fetched().as_data()
    assert data["container"]["groups"] == ["path:/model", "7"]
    data["container"]["groups"] = ["7"]  # the other needs the host's file

    made = plan(data, host=host(1))

    kinds = [what for what in granted(made) if not what.startswith(("shm:", "ulimit:", "tmpfs"))]
    assert kinds == ["group:7", "mount:/home/rocmrun:rw", "mount:/model:rw", "network:bridge"]
    assert made.devices == ()
    assert made.restart == "no"


def test_the_words_are_those_of_hf_download() -> None:
    """So that a downloader of the image can take the place of ours."""
    own = fetched({"fetch": {"target": "/model", "command": ["hf", "download"]}})

    assert own.container.entrypoint == ()
    assert own.container.command == (
        "hf", "download", "Qwen/Qwen3", "--local-dir", "/model", "--revision", "v1",
        "--include", "*.json", "--exclude", "*.bin", "--exclude", "*.pt",
    )  # fmt: skip
    assert fetched().container.command[:2] == ("python3", "-c")  # type: ignore[index]  # it is set


@pytest.mark.parametrize("environment", [{}, {"HF_TOKEN": "t"}])
def test_the_token_goes_to_the_download_if_there_is_one(environment: dict[str, str]) -> None:
    """Public models need none; the server has none either way."""
    assert fetched(environment=environment).container.env_from == tuple(environment)
    assert parse_profile(SERVER).container.env_from == ()


def test_a_download_is_online() -> None:
    """Whatever the profile or the image says of the server."""
    assert fetched().container.env == {"A": "1", "HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0"}


def test_the_only_mount_is_the_one() -> None:
    """With several, the profile says which; with none there is nowhere to write."""
    one = parse_profile({"mounts": [{"source": "/a", "target": "/b"}]})
    assert fetch_mount(one, "job")[1] == "/b"
    with pytest.raises(UsageError, match="2 mounts") as caught:
        fetch_mount(parse_profile({**SERVER, "fetch": {}}), "job")
    assert caught.value.hint == '[fetch] target = "/model" or "/data"'
    with pytest.raises(UsageError, match="mounts nothing"):
        fetch_mount(parse_profile({}), "job")


def test_a_target_that_would_be_lost_is_refused() -> None:
    """It is no mount's."""
    with pytest.raises(ProfileInvalid) as caught:
        parse_profile({**SERVER, "fetch": {"target": "/models"}})
    assert "would be gone" in caught.value.details[0]


def test_several_go_into_directories_of_their_names() -> None:
    """The last part of a repository's name."""
    assert directory_below("Qwen/Qwen3-0.6B") == "Qwen3-0.6B"
    assert directory_below("/") == "model"


HUB = """
def snapshot_download(repo_id, *, revision=None, local_dir=None, allow_patterns=None, ignore_patterns=None{more}):
    print(repo_id, revision, local_dir, allow_patterns, ignore_patterns{shown})
"""


@pytest.mark.parametrize("old", [False, True])
def test_the_downloader_works_with_old_and_new_hub_clients(tmp_path: Path, *, old: bool) -> None:
    """Old ones could make links into a cache that the server does not have; others know no such option."""
    more = ', local_dir_use_symlinks="auto"' if old else ""
    shown = ", local_dir_use_symlinks" if old else ""
    (tmp_path / "huggingface_hub.py").write_text(HUB.format(more=more, shown=shown))

    done = subprocess.run(
        [sys.executable, "-c", DOWNLOADER, *QWEN.arguments("/model")],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip

    words = "Qwen/Qwen3 v1 /model ['*.json'] ['*.bin', '*.pt']" + (" False" if old else "")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, words)


def test_an_image_without_a_hub_client_is_said() -> None:
    """With the key that names another downloader."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", DOWNLOADER, "a/b"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert "[fetch] command" in done.stderr
