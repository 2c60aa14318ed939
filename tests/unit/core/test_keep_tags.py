"""Which keep-tags no lock uses any more, and what goes with them."""

from rocmrun.core.keep_tags import KeptImage, NamedImage, keep_tag, unused
from tests.registries import digest

ID = digest("1")
TAG, OTHER_TAG = f"rocmrun/locked:{'a' * 12}", f"rocmrun/locked:{'b' * 12}"
PULLED = f"docker.io/team/x@{digest('a')}"


def image(*names: str, image_id: str = ID) -> NamedImage:
    return NamedImage(
        image_id=image_id,
        tags=tuple(name for name in names if "@" not in name),
        digests=tuple(name for name in names if "@" in name),
        size_bytes=7,
    )


def found(*images: NamedImage, locked: str = "", in_use: bool = False) -> tuple[KeptImage, ...]:
    return unused(images, locked=[digest(letter) for letter in locked], in_use=[ID] * in_use)


def test_a_tag_is_the_digest_that_people_compare() -> None:
    assert keep_tag(digest("a")) == TAG


def test_what_a_lock_holds_is_kept() -> None:
    assert found(image(TAG, PULLED), locked="a") == ()
    assert found(image("team/x:1", PULLED)) == ()


def test_the_image_goes_where_nothing_else_names_it() -> None:
    """The name that our own pull gave it goes with the tag; one that `docker load` made has none."""
    assert [item.names for item in found(image(TAG, PULLED))] == [(TAG, PULLED)]
    assert [item.names for item in found(image(TAG))] == [(TAG,)]


def test_only_the_tag_goes_where_something_else_names_the_image() -> None:
    for other in ("team/x:1", f"docker.io/team/x@{digest('c')}"):
        (item,) = found(image(TAG, PULLED, other))

        assert (item.names, item.stays) == ((TAG,), f"{other} names it too")


def test_one_digest_of_an_image_may_be_locked_and_another_not() -> None:
    """An index and its child are one image."""
    child = f"docker.io/team/x@{digest('b')}"
    (item,) = found(image(TAG, OTHER_TAG, PULLED, child), locked="b")

    assert (item.tags, item.names, item.stays) == ((TAG,), (TAG,), f"{child} names it too")
    (both,) = found(image(OTHER_TAG, TAG, PULLED, child))
    assert (both.names, both.stays) == ((TAG, OTHER_TAG, PULLED, child), "")


def test_nothing_of_an_image_in_use_is_removed() -> None:
    (item,) = found(image(TAG, PULLED), in_use=True)

    assert (item.tags, item.names, item.stays) == ((TAG,), (), "a container uses it")


def test_digests_of_our_own_tags_name_nothing() -> None:
    """containerd's store gives every tag one."""
    (item,) = found(image(TAG, PULLED, f"rocmrun/locked@{digest('a')}"))

    assert (item.names, item.stays) == ((TAG, PULLED), "")


def test_the_order_is_that_of_the_tags() -> None:
    others = [image(OTHER_TAG, image_id=digest("2")), image(TAG)]

    assert [item.tags for item in found(*others)] == [(TAG,), (OTHER_TAG,)]
