"""The table [image] of a profile: what is started, and whose signature it must carry."""

from typing import Literal

from pydantic import Field

from rocmrun.core.profile.fields import Boolean, ImageText, Text
from rocmrun.core.profile.table import Table
from rocmrun.core.signature import SignatureRule


class Verify(Table):
    """Whose signature the image must carry; cosign verifies it."""

    key: Text = Field(
        "",
        description="File with the signer's public key in PEM; ~ and paths relative to the profile's file are allowed.",
    )
    identity: Text = Field(
        "",
        description="E-mail address or URI in the signer's certificate, in place of a key.",
    )
    issuer: Text = Field(
        "",
        description="Who vouched for the identity, as in https://token.actions.githubusercontent.com.",
    )
    transparency_log: Boolean = Field(
        default=True,
        description="Whether the signature must be in the public transparency log; false for a key of your own whose signatures are not sent there.",
    )

    @property
    def rule(self) -> SignatureRule:
        """What cosign is asked."""
        return SignatureRule(
            key=self.key or None,
            identity=self.identity or None,
            issuer=self.issuer or None,
            transparency_log=self.transparency_log,
        )


class Image(Table):
    """What is started."""

    ref: ImageText | None = Field(
        None,
        description="The image, by tag; `rocmrun lock` pins it to a digest. Needed to launch, not in a parent profile.",
    )
    platform: Text = Field("linux/amd64", description="The platform to pin and to start.")
    moving_tags: Literal["warn", "refuse"] = Field(
        "warn",
        description="What to do about a tag that is expected to change: latest, nightly, none at all.",
    )
    verify: Verify | None = Field(None, description=Verify.__doc__)

    @property
    def signature_rule(self) -> SignatureRule | None:
        """Whose signature it must carry; None when the profile asks for none."""
        return None if self.verify is None else self.verify.rule
