"""Signatures of images: whose a profile asks for, how cosign is asked, and what its answer must say. Starts nothing."""

import hashlib
import json
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from rocmrun.core.plan import canonical_json

# cosign reads a public key from a variable too: the key that is recorded is then the very one that was used.
KEY_VARIABLE = "ROCMRUN_COSIGN_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureRule:
    """Whose signature an image must carry: that of a key, or of an identity that an issuer vouches for.

    Attributes:
        key: Path of a public key in PEM.
        identity: E-mail address or URI in the signer's certificate.
        issuer: Whoever vouched for the identity, as a URL.
        transparency_log: Whether the public log must hold the signature too.
    """

    key: str | None = None
    identity: str | None = None
    issuer: str | None = None
    transparency_log: bool = True

    def __str__(self) -> str:
        """Return it for people: "key /etc/keys/team.pub"."""
        return _signer(self)

    def arguments(self, name: str) -> tuple[str, ...]:
        """Return cosign's arguments to verify *name* ("repository@sha256:…"); a key is in KEY_VARIABLE."""
        words = ["verify", "--output=json"]
        if self.key:
            words.append(f"--key=env://{KEY_VARIABLE}")
        else:
            words.append(f"--certificate-identity={self.identity}")
            words.append(f"--certificate-oidc-issuer={self.issuer}")
        if not self.transparency_log:
            words.append("--insecure-ignore-tlog=true")
        return (*words, name)

    def command(self, name: str) -> str:
        """Return the command with which people can ask cosign themselves."""
        words = ("cosign", *self.arguments(name))
        return " ".join(words).replace(f"env://{KEY_VARIABLE}", self.key or "")


class VerifiedSignature(BaseModel):
    """What was verified, as it is recorded and kept.

    Attributes:
        reference: "repository@sha256:…".
        key: Path of the public key; *key_sha256* says which key it was.
        verified_at: ISO 8601 with offset, by the caller's clock.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    reference: str
    key: str | None = None
    key_sha256: str | None = None
    identity: str | None = None
    issuer: str | None = None
    transparency_log: bool = True
    verified_at: str

    @classmethod
    def of(
        cls, reference: str, rule: SignatureRule, *, key: bytes | None, verified_at: str
    ) -> "VerifiedSignature":
        """Return the record of a signature that cosign has verified; *key* is the public key's content."""
        return cls(
            reference=reference,
            key=rule.key,
            key_sha256=hashlib.sha256(key).hexdigest() if key is not None else None,
            identity=rule.identity,
            issuer=rule.issuer,
            transparency_log=rule.transparency_log,
            verified_at=verified_at,
        )

    @property
    def signer(self) -> str:
        """Who signed, for people."""
        return _signer(self)

    @property
    def name(self) -> str:
        """A name for what was asked: equal for the same content, the same signer and the same strictness."""
        asked = self.model_dump(mode="json", exclude={"key", "verified_at"})
        return hashlib.sha256(canonical_json(asked).encode()).hexdigest()


def names_digest(output: str, digest: str) -> bool:
    """Return whether cosign's JSON says that a signature of exactly *digest* was verified."""
    try:
        payloads = json.loads(output)
    except ValueError:
        return False
    return isinstance(payloads, list) and any(_digest_of(item) == digest for item in payloads)


def reason_of(stderr: str) -> str:
    """Return the one line of cosign's complaint that says why."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
    return errors[0] if errors else (lines[-1] if lines else "it gave no reason")


def _digest_of(payload: object) -> object:
    for key in ("critical", "image", "docker-manifest-digest"):
        payload = payload.get(key) if isinstance(payload, dict) else None
    return payload


def _signer(of: SignatureRule | VerifiedSignature) -> str:
    signer = f"key {of.key}" if of.key else f"{of.identity} (issuer {of.issuer})"
    return signer if of.transparency_log else f"{signer}, without the transparency log"
