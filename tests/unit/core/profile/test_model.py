"""The model: defaults, the way to text and back, and the schema and docs that come from it."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rocmrun.core.profile.keys import (
    in_order,
    json_schema,
    keys_markdown,
    known_keys,
    profile_keys,
    table_of,
)
from rocmrun.core.profile.merge import ProfileFile, ProfileLayer, merge
from rocmrun.core.profile.model import Privilege, Profile
from rocmrun.core.profile.parameters import filled_in
from rocmrun.core.profile.parse import dump_profile, parse_profile

ROOT = Path(__file__).parents[4]


def test_an_empty_profile_asks_for_nothing() -> None:
    profile = Profile()

    assert (profile.image.ref, profile.container.network, profile.gpus.select) == (
        None,
        "none",
        ("all",),
    )
    assert (profile.mounts, profile.devices, profile.privileges) == ((), (), ())
    assert profile.as_data() == {}


def test_a_profile_is_frozen() -> None:
    with pytest.raises(ValidationError):
        Profile().container.network = "host"  # type: ignore[misc]  # the very thing that must not work


def test_sizes_keep_their_text_and_know_their_bytes() -> None:
    profile = parse_profile({"container": {"shm_size": "9GiB", "memory": "90%", "log_size": 1024}})

    container = profile.container
    assert container.shm_size is not None
    assert (str(container.shm_size), container.shm_size.bytes) == ("9GiB", 9 * 1024**3)
    assert (container.memory.percent, container.log_size.bytes) == (90, 1024)


def test_a_grant_is_kept_in_its_one_spelling() -> None:
    privilege = Privilege(grant="ulimit:memlock=-1:-1", reason="RDMA")

    assert privilege.grant == "ulimit:memlock=-1"
    assert privilege.parsed.limits == (-1, -1)


def test_paths_are_kept_in_one_spelling() -> None:
    """Targets are compared with each other and with path:/TARGET."""
    data = {"mounts": [{"source": "/a", "target": "//models//x/"}]}

    assert parse_profile(data).mounts[0].target == "/models/x"


_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
_source = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
_word = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
_path = st.from_regex(r"(/[a-z${}.]{2}x){1,3}", fullmatch=True)
_size = st.sampled_from(["9GiB", "512m", "1.5k", 1024])
_reason = _text.map(lambda text: f"because {text}")
_grant = st.sampled_from(["cap:SYS_PTRACE", "ulimit:memlock=-1", "seccomp:x.json", "group:5"])


def _table(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keys)


_profiles = _table(
    description=_text,
    extends=_text.filter(bool),
    accelerator=st.sampled_from(["rocm", "cuda", "cpu"]),
    parameters=st.dictionaries(
        _word,
        st.fixed_dictionaries(
            {"help": _reason},
            optional={"default": st.one_of(_text, st.integers(), st.booleans())},
        ),
        max_size=2,
    ),
    image=_table(
        ref=st.just("docker.io/rocm/pytorch:x"), platform=_text, moving_tags=st.just("refuse")
    ),
    gpus=_table(
        select=st.lists(st.sampled_from(["index:0", "arch:gfx942"]), min_size=1, max_size=2),
        exclusive=st.booleans(),
        inject=st.sampled_from(["nodes", "cdi"]),
    ),
    support=_table(policy=st.sampled_from(["require", "warn", "ignore"])),
    container=_table(
        entrypoint=st.lists(_text, max_size=2),
        command=st.lists(_text, max_size=3),
        workdir=_path,
        user=st.sampled_from(["caller", "image", "1000:1000"]),
        groups=st.lists(st.integers(0, 99), max_size=2),
        network=st.sampled_from(["none", "bridge"]),
        shm_size=_size,
        memory=st.one_of(_size, st.just("90%")),
        pids=st.integers(1, 10**6),
        cpus=st.floats(0.01, 1000) | st.integers(1, 99),
        numa=st.sampled_from(["any", "gpu"]),
        tmpfs=st.dictionaries(_path, _size, max_size=2),
        stop_timeout=st.integers(0, 999),
        log_size=_size,
        restart=st.sampled_from(["no", "on-failure:3"]),
        env=st.dictionaries(_word, _text, max_size=3),
        env_from=st.lists(_word, max_size=2),
    ),
    cache=_table(mode=st.sampled_from(["persistent", "tmpfs"])),
    mounts=st.lists(
        st.fixed_dictionaries(
            {"source": _source, "target": _path},
            optional={
                "type": st.sampled_from(["bind", "volume"]),
                "mode": st.sampled_from(["ro", "rw"]),
                "selinux": st.sampled_from(["none", "shared", "private"]),
            },
        ),
        max_size=2,
    ),
    devices=st.lists(
        st.fixed_dictionaries(
            {"path": _path.map(lambda path: f"/dev{path}"), "reason": _reason},
            optional={"permissions": st.sampled_from(["r", "rw", "rwm"])},
        ),
        max_size=2,
    ),
    privileges=st.lists(st.fixed_dictionaries({"grant": _grant, "reason": _reason}), max_size=2),
    debug=_table(privileges=st.lists(_grant, max_size=2)),
    probe=_table(
        level=st.sampled_from(["quick", "standard", "full"]),
        reuse=st.sampled_from(["boot", "24h", "never"]),
        python=_text.filter(bool),
        runtime=st.sampled_from(["torch", "hip"]),
        timeout_seconds=st.integers(1, 9999),
        operators=st.lists(st.sampled_from(["flash_attn", "ours.kernels"]), max_size=2),
    ),
    policy=_table(overrides=st.booleans()),
)


@given(_profiles)
def test_profile_dump_parse_is_identity(data: dict[str, Any]) -> None:
    """By the way that a file goes, parameters included: a literal ${ comes back as it was."""
    profile = Profile.model_validate(data)

    file = ProfileFile(name="x", path="/x.toml", origin="file")
    merged = merge([ProfileLayer(file=file, data=tomllib.loads(dump_profile(profile)))])
    again = Profile.model_validate(filled_in(merged.data, {}))

    assert profile == again
    assert profile.as_data() == again.as_data()


def test_the_schema_file_is_up_to_date() -> None:
    """When this fails: rocmrun profiles schema > schema/profile.schema.json."""
    stored = (ROOT / "schema" / "profile.schema.json").read_text(encoding="utf-8")

    assert stored == json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def test_the_docs_have_every_key() -> None:
    """When this fails: cog -r docs/profiles.md."""
    docs = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")

    assert f"]]] -->\n{keys_markdown()}\n<!-- [[[end]]]" in docs


def test_every_key_is_described() -> None:
    assert [key.path for key in profile_keys() if not key.description] == []


def test_the_schema_lets_a_parameter_stand_for_a_number() -> None:
    """A profile file is checked before its parameters are filled in."""
    pids = json_schema()["$defs"]["Container"]["properties"]["pids"]

    assert pids["anyOf"] == [
        {"minimum": 1, "type": "integer"},
        {"type": "string", "pattern": r"\$\{[a-z][a-z0-9_]*\}"},
    ]


def test_a_child_needs_no_key_that_its_parent_may_have() -> None:
    """Only items of lists have required keys: those are never merged with a parent's."""
    required = {
        name: table["required"]
        for name, table in json_schema()["$defs"].items()
        if "required" in table
    }

    assert required == {
        "Mount": ["source", "target"],
        "OwnCheck": ["name"],
        "Device": ["path", "reason"],
        "Secret": ["name", "source"],
        "Privilege": ["grant", "reason"],
        "Parameter": ["help"],
    }


def test_known_keys_are_found_through_lists_and_free_keys() -> None:
    assert known_keys(("mounts", 3)) == ("type", "source", "target", "mode", "selinux")
    assert known_keys(("parameters", "anything")) == ("help", "default")
    assert known_keys(("container", "env")) == ()
    assert table_of("shm_size") == "container"
    assert table_of("reason") is None


def test_keys_can_be_put_into_the_order_of_the_models() -> None:
    data = {"container": {"env": {"b": "1", "a": "2"}, "user": "image"}, "description": "x"}

    assert list(in_order(data)) == ["description", "container"]
    assert list(in_order(data)["container"]) == ["user", "env"]
    assert list(in_order(data)["container"]["env"]) == ["b", "a"]
