"""What `rocmrun fetch` makes of a profile: the same image and user, a network, no GPU, and one mount to write to."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from rocmrun.core.profile.model import Debug, Fetch, Mount, Profile
from rocmrun.errors import UsageError

# Runs in the image with whatever huggingface_hub it has. Where it still has local_dir_use_symlinks, whose
# default is "auto" (huggingface_hub, _snapshot_download.py), links are declined: one into HOME's cache would
# lead nowhere in the server's container.
DOWNLOADER = """
import argparse, inspect, sys
try:
    from huggingface_hub import snapshot_download
except ImportError:
    sys.exit("the image has no huggingface_hub: name a downloader that it has, or write one, under [fetch] command")
parser = argparse.ArgumentParser()
parser.add_argument("repo")
parser.add_argument("--local-dir")
parser.add_argument("--revision")
parser.add_argument("--include", action="append")
parser.add_argument("--exclude", action="append")
asked = parser.parse_args()
more = {"local_dir_use_symlinks": False}
known = inspect.signature(snapshot_download).parameters
more = {name: value for name, value in more.items() if name in known}
print(snapshot_download(
    repo_id=asked.repo, revision=asked.revision, local_dir=asked.local_dir,
    allow_patterns=asked.include, ignore_patterns=asked.exclude, **more
))
"""
# The server must not look for anything; a download is nothing else. What an image bakes in cannot be unset.
_ONLINE = {"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """What is fetched, in the words of `hf download`."""

    repo: str
    revision: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def arguments(self, directory: str) -> tuple[str, ...]:
        """Return the downloader's arguments."""
        return (
            self.repo,
            "--local-dir",
            directory,
            *(("--revision", self.revision) if self.revision else ()),
            *(word for pattern in self.include for word in ("--include", pattern)),
            *(word for pattern in self.exclude for word in ("--exclude", pattern)),
        )


def fetch_mount(profile: Profile, name: str) -> tuple[Mount, str]:
    """Return the mount that downloads go to, and the path inside.

    Raises:
        UsageError: the profile has none, or several and does not say which.
    """
    mounts, target = profile.mounts, profile.fetch.target
    if target is None and len(mounts) == 1:
        return mounts[0], mounts[0].target
    for mount in mounts:
        if target and PurePosixPath(target).is_relative_to(mount.target):
            return mount, target
    if not mounts:
        msg = f"profile {name} mounts nothing that a download could go to"
        raise UsageError(msg, hint="add [[mounts]] with the directory for the model")
    msg = f"profile {name} has {len(mounts)} mounts and does not say which of them takes downloads"
    targets = " or ".join(f'"{mount.target}"' for mount in mounts)
    raise UsageError(msg, hint=f"[fetch] target = {targets}")


def fetch_profile(
    profile: Profile, name: str, download: Download, *, is_set: Mapping[str, str], below: str = ""
) -> Profile:
    """Return the profile of one download.

    Args:
        profile: The workload's.
        name: What to call it in an error.
        download: What is fetched.
        is_set: The caller's environment: optional variables that are not in it are left out.
        below: A directory below the target, where several downloads must not mix.

    Raises:
        UsageError: nothing says where the download goes.
    """
    mount, target = fetch_mount(profile, name)
    directory = f"{target}/{below}" if below else target
    container = profile.container
    program = (profile.probe.python, "-c", DOWNLOADER)
    optional = [variable for variable in profile.fetch.env_from if variable in is_set]
    changes: dict[str, Any] = {
        # A downloader listens to nobody, computes nothing, and is stopped rather than started again.
        "ports": (),
        "restart": "no",
        "shm_size": None,
        "network": "bridge",
        "entrypoint": (),
        "command": (*(profile.fetch.command or program), *download.arguments(directory)),
        "groups": tuple(g for g in container.groups if g == f"path:{mount.target}" or ":" not in g),
        "env": {k: v for k, v in container.env.items() if k not in optional} | _ONLINE,
        # What the server holds is nothing that a program with a network should see.
        "env_from": tuple(optional),
    }
    changes |= {key: None for key in ("health", "workdir") if hasattr(container, key)}
    return profile.model_copy(
        update={
            "accelerator": "cpu",
            "gpus": profile.gpus.model_copy(update={"select": ("none",), "inject": "nodes"}),
            "support": profile.support.model_copy(update={"policy": "ignore"}),
            "container": container.model_copy(update=changes),
            "cache": profile.cache.model_copy(update={"mode": "persistent"}),
            "mounts": (mount.model_copy(update={"mode": "rw"}),),
            "secrets": (),
            "devices": (),
            "privileges": tuple(p for p in profile.privileges if p.grant == "user:root"),
            "debug": Debug(),
            "probe": profile.probe.model_copy(
                update={"runtime": "torch", "image": "", "checks": ()}
            ),
            "fetch": Fetch(),
        }
    )


def directory_below(repo: str) -> str:
    """Return the directory of one of several downloads: the repository's own name."""
    return repo.rstrip("/").rpartition("/")[2] or "model"
