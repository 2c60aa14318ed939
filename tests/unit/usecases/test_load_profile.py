"""Profiles end to end: from files to values, and the shipped ones."""

from pathlib import Path

import pytest

from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.core.profile.model import Profile
from rocmrun.core.profile.parse import dump_profile
from rocmrun.errors import ParameterMissing, ProfileInvalid, ProfileNotFound, UsageError
from rocmrun.system.profile_search import ProfileSearch, default_search, shipped_directory
from rocmrun.usecases.locks import LockPlaces
from rocmrun.usecases.profiles import check_profiles, list_profiles, load_profile, show_profile

SETTINGS = {
    "train-multi-gpu": {"work_dir": "/work"},
    "dev-shell": {"work_dir": "/work"},
    "vllm-serve": {"model_dir": "/srv/model"},
    "cuda-check": {"image": "docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", "driver_dir": "/drv"},
    "vllm-serve-isolated": {"model_dir": "/srv/model", "socket_dir": "/run/serve"},
    "sglang-serve": {"model_dir": "/srv/model"},
    "llama-cpp": {"models_dir": "/srv/gguf"},
    "ollama": {"models_dir": "/srv/ollama"},
    "comfyui": {"data_dir": "/srv/comfyui"},
    "rdma-train": {"work_dir": "/work", "interface": "ib0"},
}  # fmt: skip
UNTRIED = {"comfyui", "llama-cpp", "ollama", "rdma-train", "sglang-serve", "vllm-serve-isolated"}
SHIPPED = sorted(path.stem for path in shipped_directory().glob("*.toml"))


@pytest.fixture
def search(tmp_path: Path) -> ProfileSearch:
    (tmp_path / "profiles").mkdir()
    return default_search(
        environ={"HOME": "/home/me"}, working_directory=tmp_path, system_directory=tmp_path / "etc"
    )


def write(search: ProfileSearch, name: str, text: str) -> Path:
    path = search.working_directory / "profiles" / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_profiles_are_these() -> None:
    assert SHIPPED == [
        "base", "comfyui", "cuda-check", "demo", "dev-shell", "llama-cpp", "ollama", "prod-inference",
        "rdma-train", "sglang-serve", "train-multi-gpu", "vllm-serve", "vllm-serve-isolated",
    ]  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_loads(search: ProfileSearch, name: str) -> None:
    loaded = load_profile(name, search=search, settings=SETTINGS.get(name, {}))

    assert loaded.origin == "shipped"
    assert loaded.profile.description
    assert (loaded.profile.image.ref is None) == (name == "base")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_survives_its_own_dump(search: ProfileSearch, name: str) -> None:
    loaded = load_profile(name, search=search, settings=SETTINGS.get(name, {}))
    write(search, "again", dump_profile(loaded.profile))

    assert loaded.profile == load_profile("again", search=search).profile


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_explains_its_lines(name: str) -> None:
    """The first line is the schema; what follows is said in comments, not left to be guessed."""
    lines = (shipped_directory() / f"{name}.toml").read_text(encoding="utf-8").splitlines()

    assert lines[0] == "#:schema ../schema/profile.schema.json"
    assert lines[1].startswith("# ")


def test_what_the_shipped_profiles_promise(search: ProfileSearch) -> None:
    profiles = {
        name: load_profile(name, search=search, settings=SETTINGS.get(name, {})).profile
        for name in SHIPPED
    }

    assert (
        profiles["prod-inference"].support.policy,
        profiles["prod-inference"].image.moving_tags,
    ) == (
        "require",
        "refuse",
    )
    assert [str(port) for port in profiles["vllm-serve"].container.ports] == ["127.0.0.1:8000:8000"]
    assert (profiles["demo"].accelerator, profiles["demo"].gpus.select) == ("cpu", ("none",))
    assert [device.path for device in profiles["cuda-check"].devices] == [
        "/dev/nvidia[0-9]*",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
    ]
    networks = {name: profile.container.network for name, profile in profiles.items()}
    servers = {"comfyui", "llama-cpp", "ollama", "sglang-serve", "vllm-serve"}
    assert {name for name, network in networks.items() if network == "bridge"} == {
        "dev-shell",
        *servers,
    }
    assert {name for name in servers if not _is_local(profiles[name])} == set()
    assert {name: [p.grant for p in profile.privileges] for name, profile in profiles.items() if profile.privileges} == {
        "rdma-train": ["network:host", "ulimit:memlock=-1"],
    }  # fmt: skip
    assert [n for n, profile in profiles.items() if n in UNTRIED and "not tried" not in profile.description] == []  # fmt: skip


def _is_local(profile: Profile) -> bool:
    """Whether a server's ports are for this machine alone."""
    addresses = [port.address for port in profile.container.ports]
    return addresses == ["127.0.0.1"]


def test_parents_are_looked_up_like_profiles(search: ProfileSearch) -> None:
    """A parent of one's own hides the shipped one, and that is said."""
    write(search, "base", '[container]\nnetwork = "bridge"\n')

    loaded = load_profile("prod-inference", search=search)

    assert loaded.profile.container.network == "bridge"
    assert [(file.name, file.origin) for file in loaded.chain] == [
        ("prod-inference", "shipped"),
        ("base", "project"),
    ]
    assert len(loaded.shadows) == 1
    assert loaded.source("container.network") == "profile base"


def test_a_parent_given_as_a_path_is_relative_to_the_child(search: ProfileSearch) -> None:
    other = search.working_directory / "other"
    other.mkdir()
    (other / "parent.toml").write_text('accelerator = "cpu"\n', encoding="utf-8")
    write(search, "child", 'extends = "../other/parent.toml"\n')

    assert load_profile("child", search=search).profile.accelerator == "cpu"


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c")])
def test_a_cycle_is_refused_with_its_chain(search: ProfileSearch, names: tuple[str, ...]) -> None:
    for name, parent in zip(names, (*names[1:], names[0]), strict=True):
        write(search, name, f'extends = "{parent}"\n')

    with pytest.raises(ProfileInvalid) as caught:
        load_profile("a", search=search)

    assert caught.value.message == f"profile a extends itself: {' → '.join((*names, 'a'))}"
    assert len(caught.value.details) == len(names)


def test_a_cycle_beside_the_start_is_refused_too(search: ProfileSearch) -> None:
    write(search, "start", 'extends = "a"\n')
    write(search, "a", 'extends = "b"\n')
    write(search, "b", 'extends = "a"\n')

    with pytest.raises(ProfileInvalid, match="start → a → b → a"):
        load_profile("start", search=search)


def test_a_missing_parent_names_the_child(search: ProfileSearch) -> None:
    write(search, "child", 'extends = "bsae"\n')

    with pytest.raises(ProfileNotFound, match='no profile "bsae"; did you mean "base"') as caught:
        load_profile("child", search=search)

    assert any("profiles/child.toml" in line for line in caught.value.details)


def test_extends_of_another_type_is_a_mistake_like_any_other(search: ProfileSearch) -> None:
    write(search, "child", "extends = 3\n[container]\npids = 0\n")

    with pytest.raises(ProfileInvalid) as caught:
        load_profile("child", search=search)

    assert [line.split(": ")[1] for line in caught.value.details] == ["extends", "container.pids"]


def test_each_mistake_names_the_file_that_made_it(search: ProfileSearch) -> None:
    parent = write(search, "parent", "[container]\npids = 0\n")
    child = write(search, "child", 'extends = "parent"\n[container]\nusr = "image"\n')

    with pytest.raises(ProfileInvalid) as caught:
        load_profile("child", search=search)

    assert caught.value.details == (
        f"{parent}: container.pids: must be at least 1, and is 0",
        f'{child}: container.usr: unknown key; did you mean "user"?',
    )


def test_all_missing_parameters_come_at_once(search: ProfileSearch) -> None:
    with pytest.raises(ParameterMissing) as caught:
        load_profile("cuda-check", search=search)

    assert [line.partition(":")[0] for line in caught.value.details] == ["image", "driver_dir"]


def test_a_parameter_of_the_parent_can_be_set(search: ProfileSearch) -> None:
    write(
        search, "mine", 'extends = "vllm-serve"\n[parameters.port]\nhelp = "mine"\ndefault = 9000\n'
    )

    loaded = load_profile("mine", search=search, settings={"model_dir": "/m"})

    assert str(loaded.profile.container.ports[0]) == "127.0.0.1:9000:8000"
    with pytest.raises(UsageError, match="did you mean"):
        load_profile("mine", search=search, settings={"modeldir": "/m"})


def test_the_list_holds_what_cannot_be_used_with_its_problem(search: ProfileSearch) -> None:
    write(search, "broken", "x =\n")
    write(search, "wrong", "[container]\npids = 0\n")

    summaries = {summary.file.name: summary for summary in list_profiles(search)}

    assert set(summaries) == {*SHIPPED, "broken", "wrong"}
    assert "is not TOML" in str(summaries["broken"].problem)
    assert "container.pids" in str(summaries["wrong"].problem)
    assert (summaries["demo"].problem, summaries["demo"].locked) == (None, None)
    assert summaries["cuda-check"].image == "${image}"


def test_the_list_says_what_is_locked(search: ProfileSearch, tmp_path: Path) -> None:
    demo = "127.0.0.1:5055/rocmrun/demo:1"
    pin = PinnedImage(ref=demo, digest=f"sha256:{'0' * 64}")
    lockfile = tmp_path / "rocmrun.lock"
    places = LockPlaces.of(lockfile=lockfile, environment={}, directory=tmp_path)

    def locked() -> dict[str, bool | None]:
        return {item.file.name: item.locked for item in list_profiles(search, places=places)}

    assert locked()["demo"] is False
    lockfile.write_text(Lock.of([pin]).text(), encoding="utf-8")
    assert locked() == {name: name == "demo" for name in SHIPPED} | {
        "cuda-check": None,
        "base": None,
    }
    lockfile.write_text("<<<<<<<", encoding="utf-8")
    assert locked()["demo"] is None


def test_show_has_every_value_and_who_set_it(search: ProfileSearch) -> None:
    shown = show_profile("vllm-serve", search=search, settings={"port": "9000"})

    assert shown.data["container"]["ports"] == ["127.0.0.1:9000:8000"]
    assert shown.data["mounts"] == [{"source": "${model_dir}", "target": "/model"}]
    assert shown.data["probe"]["timeout_seconds"] == 600
    assert shown.provenance["container.ports[0]"] == "profile vllm-serve, --set port"
    assert list(shown.missing) == ["model_dir"]


def test_show_refuses_a_wrong_profile(search: ProfileSearch) -> None:
    write(search, "wrong", "[container]\npids = 0\n")

    with pytest.raises(ProfileInvalid):
        show_profile("wrong", search=search)


def test_check_collects_the_mistakes_of_all(search: ProfileSearch) -> None:
    write(search, "one", "[container]\npids = 0\n")
    write(search, "two", "x =\n")

    with pytest.raises(ProfileInvalid) as caught:
        check_profiles((), search)

    assert caught.value.message == f"2 of {len(SHIPPED) + 2} profiles have mistakes"
    assert [
        next(part for part in ("one.toml: container.pids", "two.toml is not TOML") if part in line)
        for line in caught.value.details
    ] == ["one.toml: container.pids", "two.toml is not TOML"]


def test_check_needs_no_parameters(search: ProfileSearch) -> None:
    files = check_profiles(("vllm-serve", str(shipped_directory() / "demo.toml")), search)

    assert [(file.name, file.origin) for file in files] == [
        ("vllm-serve", "shipped"),
        ("demo", "file"),
    ]


def test_check_of_one_keeps_its_own_error(search: ProfileSearch) -> None:
    with pytest.raises(ProfileNotFound):
        check_profiles(("nope",), search)
