"""Parents and children: who wins, and who is named for it."""

from typing import Any

from rocmrun.core.profile.merge import ProfileFile, ProfileLayer, merge, nearest


def layer(name: str, **data: Any) -> ProfileLayer:
    return ProfileLayer(
        file=ProfileFile(name=name, path=f"/profiles/{name}.toml", origin="project"), data=data
    )


def test_tables_merge_and_lists_replace() -> None:
    base = layer(
        "base", container={"user": "image", "env": {"A": "1", "B": "1"}, "command": ["a", "b"]}
    )
    child = layer("child", container={"env": {"B": "2"}, "command": ["c"]})

    merged = merge([child, base])

    assert merged.data == {
        "container": {"user": "image", "env": {"A": "1", "B": "2"}, "command": ["c"]}
    }


def test_every_value_has_the_layer_that_set_it() -> None:
    grandparent = layer("grand", container={"pids": 1, "user": "image"}, mounts=[{"target": "/a"}])
    parent = layer("parent", container={"pids": 2})
    child = layer("child", mounts=[{"target": "/b"}])

    merged = merge([child, parent, grandparent])

    assert {key: layer.source for key, layer in merged.set_by.items()} == {
        "container.pids": "profile parent",
        "container.user": "profile grand",
        "mounts": "profile child",
    }
    assert merged.path_of("mounts[0].target") == "/profiles/child.toml"
    assert merged.path_of("container") == "/profiles/grand.toml"
    assert merged.path_of("nowhere") == "/profiles/child.toml"


def test_a_value_in_place_of_a_table_replaces_it() -> None:
    """A mistake, and the child's: nothing of the parent's table is left to be blamed."""
    merged = merge([layer("child", cache="no"), layer("base", cache={"mode": "tmpfs"})])

    assert merged.data == {"cache": "no"}
    assert list(merged.set_by) == ["cache"]


def test_what_a_file_says_of_itself_is_not_inherited() -> None:
    merged = merge(
        [layer("child", extends="base"), layer("base", description="Parent", extends="x")]
    )

    assert merged.data == {"extends": "base"}


def test_merging_changes_no_layer() -> None:
    base, child = (
        layer("base", cache={"mode": "tmpfs"}),
        layer("child", cache={"mode": "persistent"}),
    )

    merge([child, base])

    assert base.data == {"cache": {"mode": "tmpfs"}}


def test_the_nearest_entry_answers() -> None:
    """The key, else what holds it, else what it holds."""
    known = {"mounts": "list", "mounts[2]": "item", "container.env.A": "leaf"}

    assert nearest(known, "mounts[0].target") == "list"
    assert nearest(known, "mounts[2].target") == "item"
    assert nearest(known, "container.env") == "leaf"
    assert nearest(known, "cache.mode") is None
