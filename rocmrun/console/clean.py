"""What `rocmrun clean` removed, for people and as JSON."""

from collections.abc import Iterator
from typing import Any

from rocmrun.core.keep_tags import CleanedImages, KeptImage
from rocmrun.core.text import human_size, printable, short_digest


def lines(removed: list[tuple[str, str]], cleaned: CleanedImages | None) -> Iterator[str]:
    """Yield one line for each container and each image."""
    for name, why in removed:
        yield printable(f"{name}: {why}")
    for image in cleaned.images if cleaned else ():
        yield printable(f"{', '.join(image.tags)}: no lock uses it; {_outcome(image)}")


def as_json(
    removed: list[tuple[str, str]], cleaned: CleanedImages | None, *, dry_run: bool
) -> dict[str, Any]:
    """Return the same as JSON; images only where they were asked for."""
    told: dict[str, Any] = {
        "v": 1,
        "ok": True,
        "dry_run": dry_run,
        "removed": [{"name": name, "why": why} for name, why in removed],
    }
    if cleaned is not None:
        told["locks"] = list(cleaned.locks)
        told["images"] = [
            {
                "image_id": image.image_id,
                "tags": list(image.tags),
                "removed": list(image.names),
                "image_removed": not image.stays,
                "why_it_stays": image.stays or None,
                "size_bytes": image.size_bytes,
            }
            for image in cleaned.images
        ]
    return told


def _outcome(image: KeptImage) -> str:
    name = f"image {short_digest(image.image_id)}"
    if not image.stays:
        return f"{name} goes with it ({human_size(image.size_bytes)})"
    if not image.names:
        return f"{name} keeps it, since {image.stays}"
    return f"{name} stays, since {image.stays}"
