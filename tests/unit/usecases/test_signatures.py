"""Signatures: what cosign verifies of a digest counts, and whatever is in doubt does not.

cosign itself is a stand-in here; tests/docker/test_signatures.py has the real one.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.lock import PinnedImage
from rocmrun.core.signature import KEY_VARIABLE, SignatureRule, VerifiedSignature
from rocmrun.errors import SignatureUnverified
from rocmrun.usecases.prepare import Prepared, prepare
from rocmrun.usecases.signatures import Verify, verify_signature
from tests.builders import IMAGE
from tests.fakes import FakeEngine
from tests.registries import digest
from tests.unit.usecases.stage import CPU_JOB, Stage, an_engine
from tests.unit.usecases.stage import PIN as PIN_OF_STAGE

PIN = PinnedImage(ref="docker.io/team/x:1", digest=digest("a"))
LOCAL = PinnedImage(ref="docker.io/team/x:1", image_id=digest("b"), source="local")
NAME = f"docker.io/team/x@{digest('a')}"
PERSON = SignatureRule(identity="me@example.org", issuer="https://issuer.example.org")


@dataclass
class Cosign:
    """Stands for cosign: signs what it is told to, and remembers what it was asked."""

    digest: str | None = PIN.digest
    stderr: str = "Error: no signatures found"
    asked: list[tuple[Sequence[str], Mapping[str, str], float]] = field(default_factory=list)

    def __call__(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout_seconds: float
    ) -> subprocess.CompletedProcess[str]:
        self.asked.append((arguments, environment, timeout_seconds))
        if self.digest is None:
            return subprocess.CompletedProcess(arguments, 10, "", self.stderr)
        payload = {"critical": {"image": {"docker-manifest-digest": self.digest}}}
        return subprocess.CompletedProcess(arguments, 0, json.dumps([payload]), "")


@pytest.fixture
def key(tmp_path: Path) -> SignatureRule:
    path = tmp_path / "team.pub"
    path.write_text("the key")
    return SignatureRule(key=str(path))


def verify(
    rule: SignatureRule, cosign: Cosign, kept: Path, *, pin: PinnedImage = PIN, again: bool = False
) -> VerifiedSignature:
    return verify_signature(
        pin, rule, again=again, timeout_seconds=3, run=cosign, kept=kept / "kept"
    )


def test_the_digest_is_verified_and_the_key_handed_over(tmp_path: Path, key: SignatureRule) -> None:
    """Never the tag, and never a path that could be another file by then."""
    cosign = Cosign()

    found = verify(key, cosign, tmp_path)

    ((arguments, environment, seconds),) = cosign.asked
    assert (arguments[-1], environment, seconds) == (NAME, {KEY_VARIABLE: "the key"}, 3)
    assert (NAME, key.key) == (found.reference, found.key)


def test_an_identity_needs_no_key(tmp_path: Path) -> None:
    cosign = Cosign()

    found = verify(PERSON, cosign, tmp_path)

    assert cosign.asked[0][1] == {}
    assert (PERSON.identity, None) == (found.identity, found.key_sha256)


def test_what_was_verified_counts_from_then_on(tmp_path: Path, key: SignatureRule) -> None:
    """A digest's content never changes; so a machine without a network starts it too."""
    first = verify(key, Cosign(), tmp_path)

    assert first == verify(key, Cosign(digest=None), tmp_path)


def test_a_check_asks_again(tmp_path: Path, key: SignatureRule) -> None:
    verify(key, Cosign(), tmp_path)

    with pytest.raises(SignatureUnverified):
        verify(key, Cosign(digest=None), tmp_path, again=True)


def test_another_key_or_digest_or_strictness_is_asked_anew(
    tmp_path: Path, key: SignatureRule
) -> None:
    verify(key, Cosign(), tmp_path)
    other = PIN.model_copy(update={"digest": digest("c")})
    lax = SignatureRule(key=key.key, transparency_log=False)
    for rule, pin in ((lax, PIN), (key, other)):
        with pytest.raises(SignatureUnverified):
            verify(rule, Cosign(digest=None), tmp_path, pin=pin)
    Path(key.key or "").write_text("another key at the same place")

    with pytest.raises(SignatureUnverified):
        verify(key, Cosign(digest=None), tmp_path)


@pytest.mark.parametrize("damage", ["", "{", '{"reference": "x"}', "other"])
def test_a_kept_result_that_is_not_one_counts_for_nothing(
    tmp_path: Path, key: SignatureRule, damage: str
) -> None:
    verify(key, Cosign(), tmp_path)
    (path,) = (tmp_path / "kept").iterdir()
    if damage == "other":
        damage = VerifiedSignature.of("x", PERSON, key=None, verified_at="T").model_dump_json()
    path.write_text(damage)

    with pytest.raises(SignatureUnverified):
        verify(key, Cosign(digest=None), tmp_path)


def test_a_result_that_cannot_be_kept_counts_now(tmp_path: Path, key: SignatureRule) -> None:
    (tmp_path / "kept").write_text("a file where a directory belongs")

    assert verify(key, Cosign(), tmp_path).reference == NAME


def test_a_refusal_says_why_and_how_to_ask(tmp_path: Path, key: SignatureRule) -> None:
    """And is not remembered: it may be signed in a minute."""
    with pytest.raises(SignatureUnverified) as caught:
        verify(key, Cosign(digest=None), tmp_path)

    assert caught.value.message == f"cosign does not verify {NAME} by {key}: no signatures found"
    assert f"cosign verify --output=json --key={key.key} {NAME}" in (caught.value.hint or "")
    assert verify(key, Cosign(), tmp_path).reference == NAME


def test_an_answer_about_another_digest_is_refused(tmp_path: Path, key: SignatureRule) -> None:
    with pytest.raises(SignatureUnverified, match="names no signature of this digest"):
        verify(key, Cosign(digest=digest("c")), tmp_path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "does not exist"), (b"\xff\xfe", "is not UTF-8"), (b"a\0b", "is no public key")],
)
def test_a_key_that_is_none(
    tmp_path: Path, key: SignatureRule, content: bytes | None, expected: str
) -> None:
    path = Path(key.key or "")
    path.unlink()
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(SignatureUnverified, match=expected):
        verify(key, Cosign(), tmp_path)


def test_a_local_image_has_nothing_to_verify(tmp_path: Path, key: SignatureRule) -> None:
    with pytest.raises(SignatureUnverified, match="a local image has no digest"):
        verify(key, Cosign(), tmp_path, pin=LOCAL)


def prepared(stage: Stage, verify: Verify, *, fetch: bool = True, **changes: Any) -> Prepared:
    ask = stage.ask(**changes)
    return prepare(ask, an_engine(), fetch=fetch, on_pull=stage.heard.voice.on_pull, verify=verify)


def test_a_launch_verifies_before_it_fetches(tmp_path: Path) -> None:
    """And records what was verified."""
    stage = Stage(path=tmp_path)
    stage.profile(f'{CPU_JOB}[image.verify]\nkey = "team.pub"\n')
    asked: list[tuple[PinnedImage, SignatureRule]] = []

    def verify(pin: PinnedImage, rule: SignatureRule) -> VerifiedSignature:
        asked.append((pin, rule))
        return VerifiedSignature.of(pin.pull_reference, rule, key=b"", verified_at="T")

    found = prepared(stage, verify)

    rule = SignatureRule(key=str(tmp_path / "profiles/team.pub"))
    assert [(PIN_OF_STAGE, rule)] == asked
    assert (found.signature and found.signature.reference) == PIN_OF_STAGE.pull_reference


def test_what_is_not_verified_is_not_fetched(tmp_path: Path) -> None:
    stage = Stage(path=tmp_path)
    stage.profile(f'{CPU_JOB}[image.verify]\nkey = "absent.pub"\n')
    engine = FakeEngine(images={}, registry={PIN_OF_STAGE.pull_reference: IMAGE})

    with pytest.raises(SignatureUnverified, match="does not exist"):
        stage.launch(engine, probe=False)

    assert "pull" not in engine.calls
    assert stage.report["error"]["slug"] == "signature-unverified"


def test_an_unlocked_image_cannot_be_held_to_a_signature(tmp_path: Path) -> None:
    stage = Stage(path=tmp_path)
    stage.profile(f'{CPU_JOB}[image.verify]\nkey = "team.pub"\n')
    stage.lock()

    with pytest.raises(SignatureUnverified, match="only a locked image"):
        prepared(stage, verify_signature, unlocked=True)


def test_a_plan_says_what_launch_will_verify(tmp_path: Path) -> None:
    """It asks nobody."""
    stage = Stage(path=tmp_path)
    stage.profile(f'{CPU_JOB}[image.verify]\nidentity = "me"\nissuer = "https://i"\n')

    found = prepared(stage, verify_signature, fetch=False)

    assert "launch verifies the image's signature first: me (issuer https://i)" in found.plan.notes
