"""`rocmrun lock` on a real engine and real registries: what is pinned is what was pushed, through either resolver."""

import base64
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from rocmrun.core.lock import PinnedImage, parse_lock
from rocmrun.core.manifest import DOCKER_LIST, DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST
from scripts import registry as loopback
from tests.docker.registry_content import Repository, unavailable
from tests.docker.waiting import PATIENCE_SECONDS, until
from tests.workspace import Rocmrun, Workspace

RESOLVERS = ("engine", "registry")
# bcrypt of "s3cret" for the user "me", as htpasswd -B writes it.
HTPASSWD = "me:$2b$04$abcdefghijklmnopqrstuuLZYjhNQAOdpbzt4WxWlUHjv1wsyH5DG\n"
LOGIN = ("me", "s3cret")


@pytest.fixture
def own_registry(tmp_path: Path, workspace: Workspace) -> Iterator[Repository]:
    """A repository in a registry of this test's own, which wants a login and deletes what it is told to."""
    program = shutil.which("docker-registry", path="/usr/bin:/usr/local/bin:/bin")
    if program is None:
        unavailable("docker-registry is not installed: make test installs it")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    config = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(tmp_path / "registry")},
            "delete": {"enabled": True},
        },
        "http": {"addr": address},
        "auth": {"htpasswd": {"realm": "tests", "path": str(tmp_path / "htpasswd")}},
    }
    (tmp_path / "htpasswd").write_text(HTPASSWD)
    path = tmp_path / "registry.json"
    path.write_text(json.dumps(config))
    with (tmp_path / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", path], stdout=log, stderr=log)
    try:
        port = int(address.rpartition(":")[2])
        until(lambda: loopback.answers(port) or process.poll() is not None, "a registry")
        assert process.poll() is None, (tmp_path / "registry.log").read_text()
        yield Repository(address=address, name=f"t/{workspace.token}", login=LOGIN)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def profile(workspace: Workspace, ref: str, name: str = "job", image: str = "") -> str:
    return workspace.write(f'extends = "base"\n[image]\nref = "{ref}"\n{image}', name=name)


def pins(workspace: Workspace) -> dict[str, PinnedImage]:
    lock = parse_lock(workspace.lockfile.read_text(), "rocmrun.lock")
    return {image.ref: image for image in lock.images}


def logged_in(tmp_path: Path, repository: Repository) -> dict[str, str | None]:
    """Return the environment of a user who has done `docker login` there."""
    assert repository.login is not None
    directory = tmp_path / "docker"
    directory.mkdir(exist_ok=True)
    auth = base64.b64encode(":".join(repository.login).encode()).decode()
    config = {"auths": {repository.address: {"auth": auth}}}
    (directory / "config.json").write_text(json.dumps(config))
    return {"DOCKER_CONFIG": str(directory)}


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("media_type", [DOCKER_MANIFEST, OCI_MANIFEST])
def test_a_single_image(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository, resolver: str, media_type: str
) -> None:
    """The digest is that of the pushed bytes; an engine tells no platform of an OCI manifest."""
    pushed = repository.manifest("1", media_type)
    name = profile(workspace, pushed.ref)

    rocmrun("lock", name, "--resolver", resolver, check=True)

    pin = pins(workspace)[pushed.ref]
    assert (pushed.digest, media_type) == (pin.digest, pin.media_type)
    told = None if (resolver, media_type) == ("engine", OCI_MANIFEST) else ("linux/amd64",)
    assert told == pin.platforms
    assert (pushed.image_id if resolver == "registry" else None) == pin.image_id


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize(
    ("media_type", "attestation"), [(OCI_INDEX, False), (OCI_INDEX, True), (DOCKER_LIST, False)]
)
def test_an_index(
    rocmrun: Rocmrun,
    workspace: Workspace,
    repository: Repository,
    resolver: str,
    media_type: str,
    *,
    attestation: bool,
) -> None:
    """The index's digest is locked, not a child's; attestations are no platforms."""
    pushed = repository.index("1", media_type, attestation=attestation)
    name = profile(workspace, pushed.ref)

    rocmrun("lock", name, "--resolver", resolver, check=True)

    pin = pins(workspace)[pushed.ref]
    assert (pushed.digest, media_type) == (pin.digest, pin.media_type)
    assert pin.platforms == ("linux/amd64", "linux/arm64")


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_another_platform(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository, resolver: str
) -> None:
    """One that the index has is locked, with its own image id; one that it has not is exit 7."""
    pushed = repository.index("1")
    arm = repository.manifest("1-arm64", OCI_MANIFEST, platform="linux/arm64")
    name = profile(workspace, pushed.ref)

    rocmrun("lock", name, "--resolver", resolver, check=True)
    rocmrun("lock", name, "--platform", "linux/arm64", "--resolver", resolver, check=True)
    refused = rocmrun("lock", name, "--platform", "linux/s390x", "--resolver", resolver)

    pin = pins(workspace)[pushed.ref]
    assert (pushed.digest, "linux/arm64") == (pin.digest, pin.platform)
    assert (arm.image_id if resolver == "registry" else None) == pin.image_id
    assert refused.returncode == 7
    assert "not made for linux/s390x" in refused.stderr


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_facts_without_a_pull(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository, resolver: str
) -> None:
    """The config is a few hundred bytes; an engine that has not pulled the image cannot tell it."""
    env = ("ROCM_VERSION=7.1.0", "PYTORCH_ROCM_ARCH=gfx942;gfx90a")
    pushed = repository.manifest("rocm7.0_x_pytorch_2.9.1", env=env)
    name = profile(workspace, pushed.ref)

    rocmrun("lock", name, "--facts", "--resolver", resolver, check=True)

    pin = pins(workspace)[pushed.ref]
    assert pin.facts is not None
    assert (pin.facts.rocm, pin.facts.torch, pin.facts.python, pin.facts.user) == (
        "7.1.0",
        "2.9.1",
        "3.12.3",
        "1000",
    )
    assert pin.facts.gfx == ("gfx90a", "gfx942")
    assert pin.facts.sources["torch"] == "tag"
    assert pushed.image_id == pin.image_id


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_a_tag_that_moves_and_then_loses_its_old_digest(
    rocmrun: Rocmrun,
    workspace: Workspace,
    own_registry: Repository,
    tmp_path: Path,
    resolver: str,
) -> None:
    """Kept until asked; 4 while the old digest is there, 5 when it is gone; followed on --upgrade-image."""
    env = logged_in(tmp_path, own_registry)
    old = own_registry.manifest("1", env=("V=1",))
    name = profile(workspace, old.ref)
    how = ("--resolver", resolver)
    rocmrun("lock", name, *how, env=env, check=True)
    assert rocmrun("lock", name, "--check", *how, env=env).returncode == 0

    new = own_registry.manifest("1", env=("V=2",))
    rocmrun("lock", name, *how, env=env, check=True)
    moved = rocmrun("lock", name, "--check", *how, env=env)
    own_registry.delete(old.digest)
    gone = rocmrun("lock", name, "--check", *how, env=env)

    assert old.digest == pins(workspace)[old.ref].digest
    assert (moved.returncode, gone.returncode) == (4, 5)
    assert "still there" in moved.stderr
    assert "docker tag" in gone.stderr
    upgraded = rocmrun("lock", "--upgrade-image", name, *how, env=env, check=True)
    assert f"{old.digest[7:19]} -> {new.digest[7:19]}" in upgraded.stdout
    assert new.digest == pins(workspace)[old.ref].digest
    own_registry.delete(new.digest)
    deleted = rocmrun("lock", name, "--check", "--json", *how, env=env)
    assert (deleted.returncode, json.loads(deleted.stdout)["error"]["slug"]) == (5, "image-gone")


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_without_a_login(
    rocmrun: Rocmrun, workspace: Workspace, own_registry: Repository, tmp_path: Path, resolver: str
) -> None:
    """Exit 6 with the command to run; an engine reports it as its own error 500."""
    pushed = own_registry.manifest("1")
    name = profile(workspace, pushed.ref)
    nobody = {"DOCKER_CONFIG": str(tmp_path)}

    refused = rocmrun("lock", name, "--resolver", resolver, env=nobody)

    assert (refused.returncode, workspace.lockfile.exists()) == (6, False)
    assert f"hint: docker login {own_registry.address}" in refused.stderr


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_a_missing_credential_helper_means_anonymous(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository, tmp_path: Path, resolver: str
) -> None:
    """Public images need no login, and a helper that is not installed must not stand in the way."""
    (tmp_path / "config.json").write_text('{"credsStore": "absent-for-tests"}')
    pushed = repository.manifest("1")
    name = profile(workspace, pushed.ref)

    env = {"DOCKER_CONFIG": str(tmp_path)}
    locked = rocmrun("lock", name, "--resolver", resolver, env=env, check=True)

    told = f"warning: docker-credential-absent-for-tests is not installed: {repository.address} is asked without a login"
    warnings = [line for line in locked.stderr.splitlines() if "credential" in line]
    # A registry that wants no login is asked without one in any case; an engine gets it beforehand.
    assert warnings == ([told] if resolver == "engine" else [])
    assert pushed.digest == pins(workspace)[pushed.ref].digest


def test_without_an_engine_registries_are_asked(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository
) -> None:
    """ "auto" needs no engine; "engine" says that none answers."""
    pushed = repository.manifest("1")
    name = profile(workspace, pushed.ref)
    nowhere = {"DOCKER_HOST": "tcp://127.0.0.1:9"}

    refused = rocmrun("lock", name, "--resolver", "engine", env=nowhere)
    rocmrun("lock", name, env=nowhere, check=True)

    assert refused.returncode == 6
    assert pushed.digest == pins(workspace)[pushed.ref].digest


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("what", ["tag", "repository"])
def test_what_is_not_there(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository, resolver: str, what: str
) -> None:
    """A missing tag and a missing repository are both gone: 5."""
    repository.manifest("1")
    ref = f"{repository.address}/{repository.name}{'' if what == 'tag' else '-absent'}:2"

    refused = rocmrun("lock", profile(workspace, ref), "--resolver", resolver, "--json")

    error = json.loads(refused.stdout)["error"]
    assert (refused.returncode, error["slug"], error["code"]) == (5, "image-gone", 5)


def test_an_image_that_was_only_named_here(
    rocmrun: Rocmrun,
    workspace: Workspace,
    repository: Repository,
    engine: docker.DockerClient,
    tiny_image: str,
) -> None:
    """No registry has it: it is locked by its id, with a warning, and checks as well as it can."""
    ref = f"{repository.address}/{repository.name}-local:1"
    repository_name, _, tag = ref.rpartition(":")
    engine.api.tag(tiny_image, repository_name, tag)
    try:
        name = profile(workspace, ref)
        locked = rocmrun("lock", name, "--resolver", "engine", check=True)
        checked = rocmrun("lock", name, "--check")
        printed = rocmrun("lock", "--print", name, check=True)
    finally:
        engine.api.remove_image(ref, noprune=True)

    pin = pins(workspace)[ref]
    image_id = engine.images.get(tiny_image).id
    assert ("local", image_id, None) == (pin.source, pin.image_id, pin.digest)
    assert "cannot be reproduced elsewhere" in locked.stderr
    assert (checked.returncode, printed.stdout) == (0, f"{image_id}\n")


def test_digests_in_profiles(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository
) -> None:
    """A digest, alone or beside a tag that names another, is locked as it stands."""
    first, second = repository.manifest("1"), repository.manifest("2")
    beside = f"{second.ref}@{first.digest}"
    alone = f"{first.ref.removesuffix(':1')}@{first.digest}"
    names = [profile(workspace, beside, "beside"), profile(workspace, alone, "alone")]

    rocmrun("lock", *names, check=True)
    checked = rocmrun("lock", *names, "--check", "--resolver", "registry")
    printed = rocmrun("lock", "--print", names[0], check=True)

    assert {beside: first.digest, alone: first.digest} == {
        ref: pin.digest for ref, pin in pins(workspace).items()
    }
    assert checked.returncode == 0
    assert f"is {second.digest[7:19]} by now" in checked.stderr
    assert printed.stdout == f"{alone}\n"


def test_an_upgrade_shows_what_changed_inside(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository
) -> None:
    """What a reviewer wants: ROCm and the GPU targets, old to new."""
    repository.manifest("1", env=("ROCM_VERSION=7.1.0", "PYTORCH_ROCM_ARCH=gfx906 gfx90a"))
    ref = f"{repository.address}/{repository.name}:1"
    name = profile(workspace, ref)
    rocmrun("lock", name, "--facts", check=True)
    repository.manifest("1", env=("ROCM_VERSION=7.1.1", "PYTORCH_ROCM_ARCH=gfx90a gfx950"))

    upgraded = rocmrun("lock", name, "--upgrade", check=True)

    assert "ROCm 7.1.0 -> 7.1.1  gfx +gfx950 -gfx906" in upgraded.stdout


def test_commands_at_once_lose_no_entry(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository
) -> None:
    """Each of four processes locks its own profile in the same file."""
    pushed = [repository.manifest(str(number)) for number in range(4)]
    names = [profile(workspace, item.ref, f"job{n}") for n, item in enumerate(pushed)]

    processes = [rocmrun.start("lock", name, "--resolver", "registry") for name in names]
    for process in processes:
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr

    assert {item.ref: item.digest for item in pushed} == {
        ref: pin.digest for ref, pin in pins(workspace).items()
    }


def test_a_project_is_locked_whole(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository
) -> None:
    """Without names: the project's own profiles; what no profile uses any more is dropped."""
    first, second = repository.manifest("1"), repository.manifest("2")
    name = profile(workspace, first.ref)
    profile(workspace, second.ref, "other")

    rocmrun("lock", check=True)
    assert {first.ref, second.ref} == set(pins(workspace))
    (workspace.profiles / f"{name}.toml").unlink()
    stale = rocmrun("lock", "--check", "--offline")
    dropped = rocmrun("lock", check=True)

    assert (stale.returncode, f"extra: {first.ref}" in stale.stderr) == (3, True)
    assert f"- {first.ref}" in dropped.stdout
    assert {second.ref} == set(pins(workspace))
