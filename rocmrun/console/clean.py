"""What `rocmrun clean` removed, for people and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rocmrun.core.keep_tags import CleanedImages, KeptImage
from rocmrun.core.text import human_size, printable, short_digest

if TYPE_CHECKING:
    from rocmrun.usecases.clean_caches import CleanedCaches, UnusedCache


def lines(
    removed: list[tuple[str, str]],
    cleaned: CleanedImages | None,
    caches: "CleanedCaches | None" = None,
    *,
    renamed: list[tuple[str, str]] | None = None,
) -> Iterator[str]:
    """Yield one line for each container, each image and each cache."""
    for name, why in removed:
        yield printable(f"{name}: {why}")
    for name, final in renamed or ():
        yield printable(f"{name}: its --replace was cut off; it runs on as {final}")
    for image in cleaned.images if cleaned else ():
        yield printable(f"{', '.join(image.tags)}: no lock uses it; {_outcome(image)}")
    for cache in caches.caches if caches else ():
        yield printable(f"{cache.path}: {cache.why}; {_cache_outcome(cache)}")


def as_json(
    removed: list[tuple[str, str]],
    cleaned: CleanedImages | None,
    caches: "CleanedCaches | None" = None,
    *,
    dry_run: bool,
    renamed: list[tuple[str, str]] | None = None,
) -> dict[str, Any]:
    """Return the same as JSON; images and caches only where they were asked for."""
    told: dict[str, Any] = {
        "v": 1,
        "ok": True,
        "dry_run": dry_run,
        "removed": [{"name": name, "why": why} for name, why in removed],
        "renamed": [{"name": name, "to": final} for name, final in renamed or ()],
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
    if caches is not None:
        told["locks"] = sorted({*told.get("locks", ()), *caches.locks})
        told["caches"] = [
            {
                **{name: value for name, value in asdict(cache).items() if name != "stays"},
                "removed": not cache.stays,
                "why_it_stays": cache.stays or None,
            }
            for cache in caches.caches
        ]
    return told


def _cache_outcome(cache: "UnusedCache") -> str:
    size = human_size(cache.size_bytes)
    return f"it stays ({size}), since {cache.stays}" if cache.stays else f"it goes ({size})"


def _outcome(image: KeptImage) -> str:
    name = f"image {short_digest(image.image_id)}"
    if not image.stays:
        return f"{name} goes with it ({human_size(image.size_bytes)})"
    if not image.names:
        return f"{name} keeps it, since {image.stays}"
    return f"{name} stays, since {image.stays}"
