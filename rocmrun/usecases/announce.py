"""Say what was read and planned before it is acted on."""

from rocmrun.core.voice import Voice
from rocmrun.usecases.images import how_known
from rocmrun.usecases.prepare import Prepared
from rocmrun.usecases.support import support_warnings


def announce(prepared: Prepared, voice: Voice) -> None:
    """Name the profile and lock files used, and whatever the plan notes."""
    for note in prepared.loaded.shadows:
        voice.warn(note)
    lock = prepared.lock_path or "no lock file"
    image = prepared.plan.image
    voice.say(f"profile {prepared.loaded.path}, lock {lock}")
    if prepared.pin is None:
        voice.warn(
            f"{image.ref} is not locked: what starts is whatever the tag names on this machine"
        )
    else:
        known = how_known(prepared.pin, prepared.image)
        voice.say(f"image {image.ref} @ {image.digest or image.image_id}{known}")
    for warning in support_warnings(prepared.support, prepared.loaded):
        voice.warn(warning)
    if signature := prepared.signature:
        voice.say(f"signature verified {signature.verified_at}: {signature.signer}")
    for note in prepared.plan.notes:
        (voice.warn if note in prepared.engine_notes else voice.detail)(note)
