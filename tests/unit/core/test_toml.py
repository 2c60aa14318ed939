"""Writing TOML that the standard library reads back."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.toml import dump_toml, key_path

_text = st.text(st.characters(exclude_categories=["Cs"]))
_scalars = st.one_of(
    _text, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False)
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_text, _values, max_size=4))
def test_what_is_written_is_read_back(table: dict[str, object]) -> None:
    assert table == tomllib.loads(dump_toml(table))


def test_tables_stand_below_plain_keys() -> None:
    """A key after a table header would belong to that table."""
    text = dump_toml({"a": {"x": 1, "deep": {"y": 2}}, "rows": [{"z": 3}], "b": True})

    assert text == "b = true\n\n[a]\nx = 1\n\n[a.deep]\ny = 2\n\n[[rows]]\nz = 3\n"


def test_comments_stand_behind_values_and_array_tables() -> None:
    text = dump_toml({"a": {"x": 1}, "rows": [{"z": 3}]}, key_path)

    assert text == "[a]\nx = 1  # a.x\n\n[[rows]]  # rows[0]\nz = 3\n"


def test_a_key_path_quotes_what_is_no_bare_key() -> None:
    assert key_path(("mounts", 0, "target")) == "mounts[0].target"
    assert key_path(("container", "tmpfs", "/a.b")) == 'container.tmpfs."/a.b"'
