"""`[image.verify]` with the real cosign, on images that it really signed in the registry on loopback."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest

from scripts import cosign as program
from scripts import registry as loopback
from scripts.setup import BUILD
from tests.docker.registry_content import Pushed, Repository, unavailable
from tests.workspace import Rocmrun, Workspace


@dataclass(frozen=True, kw_only=True)
class Signer:
    """cosign, with keys of this test's own."""

    cosign: Path
    path: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return what puts cosign on rocmrun's PATH, with nobody's configuration."""
        directories = f"{self.cosign.parent}:{os.environ['PATH']}"
        return {"PATH": directories, "HOME": str(self.path), "COSIGN_PASSWORD": ""}

    def key(self, name: str) -> str:
        """Make a pair of keys and return the path of the public one."""
        self._run("generate-key-pair", f"--output-key-prefix={name}")
        return str(self.path / f"{name}.pub")

    def sign(self, pushed: Pushed, key: str) -> None:
        """Sign what was pushed, by its digest; nothing goes to the public log."""
        private = f"--key={key.removesuffix('.pub')}.key"
        name = f"{pushed.ref.rpartition(':')[0]}@{pushed.digest}"
        version3 = ["--use-signing-config=false"] if self._signs_by_configuration() else []
        self._run("sign", "--yes", "--tlog-upload=false", *version3, private, name)

    def _signs_by_configuration(self) -> bool:
        return "--use-signing-config" in self._run("sign", "--help")

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.cosign, *arguments],
            cwd=self.path,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    """cosign and a folder for its keys."""
    found = program.path(BUILD)
    if found is None:
        unavailable("there is no cosign: make test fetches Debian's")
    (tmp_path / "keys").mkdir()
    return Signer(cosign=found, path=tmp_path / "keys")


def profile(workspace: Workspace, ref: str, verify: str, name: str = "job") -> str:
    image = f'[image]\nref = "{ref}"\n[image.verify]\n{verify}\ntransparency_log = false\n'
    gpus = '[gpus]\nselect = ["none"]\n'
    return workspace.write(f'extends = "base"\naccelerator = "cpu"\n{image}{gpus}', name=name)


@pytest.mark.parametrize("kind", ["manifest", "index"])
def test_a_signed_image_is_locked_and_checked(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository, signer: Signer, kind: str
) -> None:
    """By the digest that the tag names, an index's where there is one."""
    pushed = repository.manifest("1") if kind == "manifest" else repository.index("1")
    key = signer.key("team")
    signer.sign(pushed, key)
    name = profile(workspace, pushed.ref, f'key = "{key}"')

    locked = rocmrun("lock", name, "--json", env=signer.environment, check=True)
    checked = rocmrun("lock", name, "--check", env=signer.environment, check=True)

    (verified,) = json.loads(locked.stdout)["verified"]
    assert verified["reference"].endswith(f"@{pushed.digest}")
    assert verified["key"] == key
    assert "1 signature verified" in checked.stdout


def test_what_is_not_signed_by_this_key_is_not_locked(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository, signer: Signer
) -> None:
    """No signature, and one by somebody else: exit 7, nothing written, and the reason."""
    signed, unsigned = repository.manifest("1"), repository.manifest("2")
    signer.sign(signed, signer.key("somebody"))
    key = signer.key("team")
    names = [
        profile(workspace, signed.ref, f'key = "{key}"', "signed"),
        profile(workspace, unsigned.ref, f'key = "{key}"', "unsigned"),
    ]

    refused = rocmrun("lock", *names, "--json", env=signer.environment)

    error = json.loads(refused.stdout)["error"]
    assert (refused.returncode, error["slug"]) == (7, "signature-unverified")
    assert len(error["details"]) == 2
    assert "no signatures found" in refused.stdout
    assert "signature" in error["details"][0]
    assert not workspace.lockfile.exists()


def test_a_tag_that_moved_to_an_unsigned_image_keeps_its_pin(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository, signer: Signer
) -> None:
    """The signature is the digest's: the tag's new image has none."""
    key, old = signer.key("team"), repository.manifest("1", env=("V=1",))
    signer.sign(old, key)
    name = profile(workspace, old.ref, f'key = "{key}"')
    rocmrun("lock", name, env=signer.environment, check=True)
    before = workspace.lockfile.read_bytes()
    repository.manifest("1", env=("V=2",))

    upgraded = rocmrun("lock", name, "--upgrade", env=signer.environment)

    assert (upgraded.returncode, workspace.lockfile.read_bytes()) == (7, before)


def test_launch_verifies_once_and_records_it(
    rocmrun: Rocmrun,
    workspace: Workspace,
    repository: Repository,
    signer: Signer,
    tiny_image: str,
    engine: docker.DockerClient,
) -> None:
    """Without cosign nothing starts; what was verified once starts without it, and the report has it."""
    source = loopback.digest(tiny_image)
    assert source is not None
    pushed = repository.copy(tiny_image, source)
    key = signer.key("team")
    signer.sign(pushed, key)
    name = profile(workspace, pushed.ref, f'key = "{key}"')
    job = ("launch", name, "--no-probe", "--report", "report.json", "--", "/bin/true")
    without = {"PATH": "/usr/bin:/bin"}
    pinned = f"{pushed.ref.rpartition(':')[0]}@{pushed.digest}"
    rocmrun("lock", name, env=signer.environment, check=True)
    try:
        fresh = {"XDG_STATE_HOME": str(workspace.path / "fresh")}
        refused = rocmrun(*job, env=without | fresh)
        first = rocmrun(*job, env=signer.environment | fresh, check=True)
        rocmrun(*job, env=without | fresh, check=True)
    finally:
        engine.api.remove_image(pinned, noprune=True)

    report = json.loads((workspace.path / "report.json").read_text())
    assert (refused.returncode, "cosign is not installed" in refused.stderr) == (125, True)
    assert "signature verified" in first.stderr
    assert report["signature"]["reference"] == pinned


def test_an_identity_that_cannot_be_verified_is_refused(
    rocmrun: Rocmrun, workspace: Workspace, repository: Repository, signer: Signer
) -> None:
    """By a key it is signed, by that person it is not; nor can anybody tell without the public log's keys."""
    pushed = repository.manifest("1")
    signer.sign(pushed, signer.key("team"))
    who = 'identity = "me@example.org"\nissuer = "https://issuer.example.org"'
    name = workspace.write(
        f'extends = "base"\n[image]\nref = "{pushed.ref}"\n[image.verify]\n{who}\n'
    )

    refused = rocmrun("lock", name, env=signer.environment)

    assert refused.returncode == 7
    assert "by me@example.org (issuer https://issuer.example.org)" in refused.stderr
    assert not workspace.lockfile.exists()
