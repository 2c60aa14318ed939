"""Verify the signature of a locked image before anything is pulled, created or written. Whatever is in doubt is refused."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from rocmrun.core.lock import PinnedImage
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.signature import (
    KEY_VARIABLE,
    SignatureRule,
    VerifiedSignature,
    names_digest,
    reason_of,
)
from rocmrun.core.text import printable
from rocmrun.errors import HostNotReady, RocmrunError, SignatureUnverified
from rocmrun.system.caller import state_directory
from rocmrun.system.cosign import run_cosign
from rocmrun.system.files import make_directory, read_text, write_atomic
from rocmrun.usecases.run_report import now

TIMEOUT_SECONDS = 60.0

RunCosign = Callable[[Sequence[str], Mapping[str, str], float], "subprocess.CompletedProcess[str]"]
Verify = Callable[[PinnedImage, SignatureRule], VerifiedSignature]


def verify_signature(
    pin: PinnedImage,
    rule: SignatureRule,
    *,
    again: bool = False,
    timeout_seconds: float = TIMEOUT_SECONDS,
    run: RunCosign = run_cosign,
    kept: Path | None = None,
) -> VerifiedSignature:
    """Return what cosign verified of *pin*'s digest, never of its tag.

    A digest's content never changes, so what was verified once with the same key or identity counts
    from then on, also without a network.

    Args:
        pin: What the lock says.
        rule: Whose signature it must be.
        again: Ask cosign though it was verified before.
        timeout_seconds: How long cosign may take.
        run: Runs cosign.
        kept: Where earlier results are; this user's state directory unless a test stands elsewhere.

    Raises:
        SignatureUnverified: for whatever reason it could not be verified.
    """
    if pin.digest is None:
        msg = f"{pin.ref} must be signed ({rule}), and a local image has no digest that a signature could name"
        raise SignatureUnverified(msg, hint="push it, sign it there, and lock it again")
    name, key = pin.pull_reference, _key(rule)
    verified = VerifiedSignature.of(name, rule, key=key, verified_at=now())
    path = (kept or state_directory() / "signatures") / f"{verified.name}.json"
    if not again and (earlier := _earlier(path, verified)):
        return earlier
    environment = {} if key is None else {KEY_VARIABLE: key.decode()}
    done = run(rule.arguments(name), environment, timeout_seconds)
    if done.returncode != 0:
        raise _unverified(name, rule, reason_of(done.stderr))
    if not names_digest(done.stdout, pin.digest):
        raise _unverified(name, rule, "its answer names no signature of this digest")
    _keep(path, verified)
    return verified


def signature_of(
    loaded: LoadedProfile, pin: PinnedImage | None, verify: Verify
) -> VerifiedSignature | None:
    """Return what was verified of the image of a profile; None where the profile asks for no signature.

    Raises:
        SignatureUnverified: it could not be, or the image is not locked.
    """
    rule = loaded.profile.image.signature_rule
    if rule is None:
        return None
    if pin is None:
        msg = f"profile {loaded.name} wants its image signed ({rule}), and only a locked image can be held to that"
        raise SignatureUnverified(msg, hint=f"rocmrun lock {loaded.name}")
    return verify(pin, rule)


def signature_notes(loaded: LoadedProfile) -> tuple[str, ...]:
    """Return what a plan says of a signature that the profile asks for."""
    rule = loaded.profile.image.signature_rule
    return () if rule is None else (f"launch verifies the image's signature first: {rule}",)


def verify_again(pin: PinnedImage, rule: SignatureRule) -> VerifiedSignature:
    """Return what cosign verifies of *pin*'s digest now, whatever it said before."""
    return verify_signature(pin, rule, again=True)


def _unverified(name: str, rule: SignatureRule, reason: str) -> SignatureUnverified:
    msg = f"cosign does not verify {name} by {rule}: {printable(reason, limit=300)}"
    return SignatureUnverified(msg, hint=f"ask it yourself: {rule.command(name)}")


def _key(rule: SignatureRule) -> bytes | None:
    if rule.key is None:
        return None
    text = read_text(Path(rule.key), SignatureUnverified)
    if text is None:
        msg = f"the key {rule.key}, with which a signature must be verified, does not exist"
        raise SignatureUnverified(msg, hint="correct image.verify.key in the profile")
    if "\0" in text:
        msg = f"{rule.key} is no public key in PEM"
        raise SignatureUnverified(msg)
    return text.encode()


def _earlier(path: Path, wanted: VerifiedSignature) -> VerifiedSignature | None:
    try:
        text = read_text(path, HostNotReady)
        found = VerifiedSignature.model_validate_json(text) if text else None
    except (RocmrunError, ValidationError):
        return None  # what cannot be read has verified nothing
    return found if found is not None and found.name == wanted.name else None


def _keep(path: Path, verified: VerifiedSignature) -> None:
    """Keep the result. Failing to is no failure: cosign is asked again next time."""
    try:
        make_directory(path.parent, error=HostNotReady)
        write_atomic(path, verified.model_dump_json(), error=HostNotReady)
    except RocmrunError:
        return
