"""YAML that is shown: what its parsers would take for something else is quoted or escaped."""

import pytest

from rocmrun.core.yaml import dump_yaml


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("HF_HOME", "HF_HOME"), ("_x9", "_x9"), ("NO", '"NO"'), ("on", '"on"'), ("Y", '"Y"'), ("null", '"null"'),
        ("1e3", '"1e3"'), ("0x10", '"0x10"'), ("a.b", '"a.b"'), ("ü", '"\\u00fc"'),
    ],
)  # fmt: skip
def test_a_key_that_is_no_plain_name_is_quoted(key: str, written: str) -> None:
    """A variable named NO would be the key false to a parser of YAML 1.1."""
    assert dump_yaml({key: "x"}) == f'{written}: "x"\n'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("yes", '"yes"'), ("a: b # c", '"a: b # c"'), ('"\n\t\\', '"\\"\\n\\t\\\\"'), ("\x7f", '"\\x7f"'),
        ("ü", '"\\u00fc"'), ("x🚀", '"x\\U0001f680"'), ("\\ud83d", '"\\\\ud83d"'),
    ],
)  # fmt: skip
def test_a_text_is_escaped_as_yaml_reads_it(text: str, written: str) -> None:
    """JSON writes a rocket as two halves, each of which YAML takes for a character that there is not."""
    assert dump_yaml({"text": text}) == f"text: {written}\n"


def test_mappings_and_lists_are_blocks() -> None:
    """Empty ones, numbers and null are as in JSON."""
    value: dict[str, object] = {"a": [{"b": 1, "c": [True]}, {}], "d": {}, "e": None}

    assert dump_yaml(value) == "a:\n  - b: 1\n    c:\n      - true\n  - {}\nd: {}\ne: null\n"
