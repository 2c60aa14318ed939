"""Loading: paths, sources, and what the command line may change."""

from typing import Any

import pytest

from rocmrun.core.profile.loaded import LoadedProfile, load, override
from rocmrun.core.profile.merge import ProfileFile, ProfileLayer, merge
from rocmrun.core.profile.paths import absolute_path
from rocmrun.core.signature import SignatureRule
from rocmrun.errors import ParameterMissing, PlanRefused, ProfileInvalid


def layer(name: str, data: dict[str, Any], shadows: str | None = None) -> ProfileLayer:
    file = ProfileFile(name=name, path=f"/p/{name}/{name}.toml", origin="project", shadows=shadows)
    return ProfileLayer(file=file, data=data)


def loaded(*layers: ProfileLayer, home: str | None = "/home/me", **settings: str) -> LoadedProfile:
    return load(merge(layers), settings, directory="/here", home=home)


def mount(source: str, **keys: str) -> dict[str, Any]:
    return {"mounts": [{"source": source, "target": "/x", **keys}]}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("/srv/models", "/srv/models"),
        ("models", "/p/child/models"),
        ("./models/", "/p/child/models/"),
        ("../models", "/p/models"),
        ("~", "/home/me"),
        ("~/models", "/home/me/models"),
    ],
)
def test_a_source_starts_at_the_file_or_at_home(source: str, expected: str) -> None:
    assert expected == loaded(layer("child", mount(source))).profile.mounts[0].source


def test_a_source_of_the_parent_starts_at_the_parents_file() -> None:
    child = layer("child", {"extends": "base"})

    assert loaded(child, layer("base", mount("data"))).profile.mounts[0].source == "/p/base/data"


def test_a_source_from_set_starts_where_the_caller_stands() -> None:
    """`--set work_dir=.` means this directory, not the one of a profile somewhere else."""
    parameters = {"dir": {"help": "x", "default": "data"}}
    data = {"parameters": parameters, **mount("${dir}")}

    assert loaded(layer("child", data), dir=".").profile.mounts[0].source == "/here"
    assert loaded(layer("child", data)).profile.mounts[0].source == "/p/child/data"


def test_a_signers_key_starts_at_the_file_that_names_it() -> None:
    """Also when a child asks for something else of the image."""
    base = layer("base", {"image": {"verify": {"key": "team.pub"}}})
    child = layer("child", {"extends": "base", "image": {"ref": "x"}})
    chosen = {
        "image": {"verify": {"key": "${key}"}},
        "parameters": {"key": {"help": "h", "default": ""}},
    }

    assert loaded(child, base).profile.image.signature_rule == SignatureRule(key="/p/base/team.pub")
    rule = loaded(layer("child", chosen), key="own.pub").profile.image.signature_rule
    assert rule == SignatureRule(key="/here/own.pub")


def test_an_identity_has_no_path() -> None:
    verify = {"identity": "me@example.org", "issuer": "https://issuer.example.org"}

    rule = loaded(layer("child", {"image": {"verify": verify}})).profile.image.signature_rule

    assert rule == SignatureRule(identity=verify["identity"], issuer=verify["issuer"])


def test_a_volume_name_is_no_path() -> None:
    assert loaded(layer("child", mount("data", type="volume"))).profile.mounts[0].source == "data"


def test_homes_that_are_not_known_are_mistakes() -> None:
    data = {"mounts": [{"source": "~/a", "target": "/a"}, {"source": "~bob/b", "target": "/b"}]}

    with pytest.raises(ProfileInvalid) as caught:
        loaded(layer("child", data), home=None)

    assert caught.value.details == (
        '/p/child/child.toml: mounts[0].source: "~/a" needs HOME, which is not set',
        '/p/child/child.toml: mounts[1].source: "~bob/b" is another user\'s home; write its path',
    )


def test_a_seccomp_file_starts_at_the_profile_too() -> None:
    data = {
        "privileges": [{"grant": "seccomp:rules.json", "reason": "narrower than the default"}],
        "debug": {"privileges": ["seccomp:~/debug.json", "cap:SYS_PTRACE"]},
    }

    profile = loaded(layer("child", data)).profile

    assert profile.privileges[0].grant == "seccomp:/p/child/rules.json"
    assert profile.debug.privileges == ("seccomp:/home/me/debug.json", "cap:SYS_PTRACE")


def test_an_absolute_path_needs_no_home() -> None:
    assert absolute_path("/a/../b", directory="/d", home=None) == "/b"


def test_sources_name_files_options_and_defaults() -> None:
    child = layer(
        "child",
        {"extends": "base", "parameters": {"n": {"help": "x"}}, "container": {"pids": "${n}"}},
    )
    base = layer("base", {"cache": {"mode": "tmpfs"}, **mount("/a")})

    profile = loaded(child, base, n="7")

    assert profile.source("container.pids") == "profile child, --set n"
    assert profile.source("parameters.n") == "--set"
    assert profile.source("cache.mode") == "profile base"
    assert profile.source("mounts[0].target") == "profile base"
    assert profile.source("container.network") == "default"
    assert [file.name for file in profile.chain] == ["child", "base"]
    assert (profile.name, profile.path, profile.origin) == (
        "child",
        "/p/child/child.toml",
        "project",
    )


def test_a_hidden_shipped_profile_is_said_aloud() -> None:
    profile = loaded(layer("child", {}), layer("base", {}, shadows="/shipped/base.toml"))

    assert profile.shadows == ("profile base is /p/base/base.toml, not the shipped one",)


def test_mistakes_come_before_missing_parameters() -> None:
    """Setting them one by one would not show what else is wrong."""
    container = {"pids": "${n}", "user": "root"}
    data = {"parameters": {"n": {"help": "x"}}, "container": container}

    with pytest.raises(ProfileInvalid, match="a mistake"):
        loaded(layer("child", data))

    del container["user"]
    with pytest.raises(ParameterMissing):
        loaded(layer("child", data))


def test_a_value_from_set_is_checked_like_any_other() -> None:
    data = {"parameters": {"n": {"help": "x"}}, "container": {"pids": "${n}"}}

    with pytest.raises(ProfileInvalid) as caught:
        loaded(layer("child", data), n="many")

    assert caught.value.details == (
        "/p/child/child.toml: container.pids: expected an integer, got a string",
    )


def test_the_command_line_replaces_and_adds() -> None:
    data = {
        "container": {
            "network": "bridge",
            "ports": ["127.0.0.1:80:80"],
            "env": {"A": "1", "B": "1"},
        },
        **mount("/a"),
    }

    changed = override(
        loaded(layer("child", data)),
        replacing={"container": {"memory": "1g", "env": {"B": "2"}}},
        adding={
            "container": {"ports": ["127.0.0.1:81:81"]},
            "mounts": [{"source": "/b", "target": "/b"}],
        },
    )

    assert changed.profile.container.env == {"A": "1", "B": "2"}
    assert [str(port) for port in changed.profile.container.ports] == [
        "127.0.0.1:80:80",
        "127.0.0.1:81:81",
    ]
    assert [item.source for item in changed.profile.mounts] == ["/a", "/b"]
    assert changed.source("container.memory") == "command line"
    assert changed.source("container.env.A") == "profile child"
    assert changed.source("container.env.B") == "command line"
    assert changed.source("container.ports[0]") == "profile child"
    assert changed.source("container.ports[1]") == "command line"
    assert changed.source("mounts[1].target") == "command line"


def test_an_override_may_start_from_nothing() -> None:
    changed = override(loaded(layer("child", {})), adding={"container": {"env_from": ["TOKEN"]}})

    assert changed.profile.container.env_from == ("TOKEN",)
    assert changed.source("container.env_from[0]") == "command line"


def test_an_override_leaves_the_profile_as_it_was() -> None:
    before = loaded(layer("child", mount("/a")))

    override(before, adding={"mounts": [{"source": "/b", "target": "/b"}]})

    assert len(before.profile.mounts) == 1
    assert before.source("mounts[1]") == "profile child"


def test_an_override_that_contradicts_the_profile_is_refused() -> None:
    with pytest.raises(ProfileInvalid) as caught:
        override(
            loaded(layer("child", mount("/a"))),
            adding={"mounts": [{"source": "/b", "target": "/x/y"}]},
        )

    assert caught.value.details[0].startswith(
        'command line: mounts[1].target: "/x/y" lies under "/x"'
    )


def test_a_profile_can_forbid_overrides() -> None:
    strict = loaded(layer("child", {"policy": {"overrides": False}}))

    with pytest.raises(PlanRefused) as caught:
        override(strict, replacing={"container": {"network": "bridge"}})

    assert caught.value.details == ("asked for: container.network",)
    assert override(strict) == strict
