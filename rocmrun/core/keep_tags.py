"""Keep-tags: local names that keep images pulled by digest from `docker image prune`, and which of them are no longer needed."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rocmrun.core.text import short_digest

KEEP_REPOSITORY = "rocmrun/locked"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedImage:
    """A local image and everything that names it.

    Attributes:
        tags: "repository:tag" names.
        digests: "repository@sha256:…" names.
        size_bytes: With all its layers, also those that it shares with others.
    """

    image_id: str
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptImage:
    """An image with keep-tags that no lock uses, and what becomes of it.

    Attributes:
        tags: Those keep-tags.
        names: What is to be removed: the tags, and where nothing else names the image what the pull named it.
        stays: Why the image stays; "" when it goes with its names.
    """

    image_id: str
    tags: tuple[str, ...]
    names: tuple[str, ...]
    stays: str = ""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedImages:
    """What was done, or with a dry run would be.

    Attributes:
        images: Images with keep-tags that none of *locks* uses.
        locks: The lock files that counted.
    """

    images: tuple[KeptImage, ...]
    locks: tuple[str, ...]


def keep_tag(digest: str) -> str:
    """Return the local name that keeps an image pulled by *digest* from being dangling."""
    return f"{KEEP_REPOSITORY}:{short_digest(digest)}"


def unused(
    images: Iterable[NamedImage], *, locked: Collection[str], in_use: Collection[str]
) -> tuple[KeptImage, ...]:
    """Return the images with keep-tags that no lock uses, sorted by tag.

    Args:
        images: What the engine has.
        locked: The digests that locks hold.
        in_use: Ids of images that a container was made from, running or not; nothing of them is removed.
    """
    needed = {keep_tag(digest) for digest in locked}
    found = (_unused(image, needed, image.image_id in in_use) for image in images)
    return tuple(sorted((item for item in found if item), key=lambda item: item.tags))


def _unused(image: NamedImage, needed: Collection[str], in_use: bool) -> KeptImage | None:  # noqa: FBT001
    prefix = f"{KEEP_REPOSITORY}:"
    dropped = tuple(
        sorted(tag for tag in image.tags if tag.startswith(prefix) and tag not in needed)
    )
    if not dropped:
        return None
    # containerd's store names every tag by digest too: those of our own repository say nothing.
    others = [name for name in image.digests if not name.startswith(f"{KEEP_REPOSITORY}@")]
    pulled = [name for name in others if keep_tag(name.partition("@")[2]) in dropped]
    left = [*(set(image.tags) - set(dropped)), *(set(others) - set(pulled))]
    names: tuple[str, ...] = ()
    if in_use:
        stays = "a container uses it"
    elif left:
        names, stays = dropped, f"{min(left)} names it too"
    else:
        names, stays = (*dropped, *sorted(pulled)), ""
    return KeptImage(
        image_id=image.image_id,
        tags=dropped,
        names=names,
        stays=stays,
        size_bytes=image.size_bytes,
    )
