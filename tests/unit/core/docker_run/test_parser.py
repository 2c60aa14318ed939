"""Published docker run lines are read as their authors meant them, and nothing in them is expanded."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.docker_run.parser import DockerRun, parse_docker_run
from rocmrun.core.docker_run.shell_words import plain
from rocmrun.errors import UsageError
from tests.unit.core.docker_run.recipes import RECIPES, Recipe

COLLECTION = Path(__file__).parents[5] / "shared" / "data" / "recipes.jsonl"
KINDS = frozenset({"docker-run", "docker-create", "podman-run"})
# The collection's own: no image, or none that a registry takes. Nothing is read in another way there.
_NO_REPAIR = frozenset({"no image", "invalid reference format"})
_SCALARS = ("name", "workdir", "user", "ipc", "pid", "network", "restart", "gpus", "runtime")
_FLAGS = {"tty": "tty", "interactive": "interactive", "rm": "rm", "detach": "detach", "privileged": "privileged"}  # fmt: skip


def collected() -> Iterator[dict[str, Any]]:
    """Yield the lines of the collection of published recipes, where it stands beside the checkout."""
    if not COLLECTION.exists():
        pytest.skip(f"no collection of recipes at {COLLECTION}")
    for line in COLLECTION.read_text(encoding="utf-8").splitlines():
        recipe = json.loads(line)
        if recipe["kind"] in KINDS:
            yield recipe


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_published_line_is_read(recipe: Recipe) -> None:
    """Image, command and what stays open are what a person reads in it; a repair is said."""
    run = parse_docker_run(recipe.text)

    assert recipe.image == plain(run.image)
    assert recipe.command == tuple(map(plain, run.command))
    assert sorted(recipe.unresolved) == sorted(run.unresolved)
    assert recipe.repaired == bool(run.repairs)


def test_every_collected_line_is_read() -> None:
    """Each option of each recipe comes out as the collection says; it was compared with docker's own client."""
    for recipe in collected():
        expected = recipe["expected"]
        run = parse_docker_run(recipe["text"])
        place = recipe["id"]
        assert (place, expected["image"] or "") == (place, plain(run.image))
        assert (place, expected["command"]) == (place, [plain(word) for word in run.command])
        assert (place, expected["env"]) == (place, _names(run))
        assert (place, expected["groups"]) == (place, [plain(v) for v in run.all("group-add")])
        assert (place, len(expected["ports"])) == (place, len(run.all("publish")))
        for key in _SCALARS:
            value = run.last(key)
            assert (place, expected[key]) == (place, None if value is None else plain(value))
        for key, flag in _FLAGS.items():
            assert (place, expected[key]) == (place, run.has(flag))
        # "..." is no expression of any shell; it stays text.
        assert (place, {*expected["unresolved"]} - {"..."}) == (place, {*run.unresolved})
        repaired = expected["error"] is not None and expected["error"] not in _NO_REPAIR
        assert (place, repaired) == (place, bool(run.repairs))


def _names(run: DockerRun) -> list[str]:
    return [plain(value).partition("=")[0].strip() for value in run.all("env")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("docker ps", "no `docker run`"),
        ("", "no `docker run`"),
        ("docker run --privilegd x/y", "did you mean"),
        ("docker run -X x/y", "-X is no option"),
        ("docker run -v", "-v has no value"),
        ("docker run 'x/y", "single quote is not closed"),
        ('docker run "x/y', "double quote is not closed"),
        ("docker run $(pwd", "is not closed"),
    ],
)
def test_what_cannot_be_read_is_one_error(line: str, words: str) -> None:
    """It names the word at which reading ended."""
    with pytest.raises(UsageError, match="docker run line cannot be read") as caught:
        parse_docker_run(line)

    assert words in caught.value.message


def test_the_last_scalar_counts_and_lists_add_up() -> None:
    """As docker does."""
    run = parse_docker_run("docker run --ipc=host --ipc private -e A=1 -eB=2 --tty=false -t=true x")

    assert run.last("ipc") == "private"
    assert run.all("env") == ("A=1", "B=2")
    assert not run.has("interactive")


@pytest.mark.parametrize(
    "line", ["docker container run -- x", "docker --context=far run x", "time sudo docker run x"]
)
def test_other_ways_to_write_the_command_are_read(line: str) -> None:
    """With the long form, the end of options, options of docker itself and programs before it."""
    assert parse_docker_run(line).image == "x"


@pytest.mark.parametrize(
    "line",
    [
        "docker run x >",
        "docker run x > # end",
        "docker run x 2>&1 | tee log",
        "docker run x < in",
        "docker run x &&\\\n",
    ],
)
def test_what_comes_after_the_command_is_no_part_of_it(line: str) -> None:
    """Redirections and pipes belong to the shell, also where nothing follows them."""
    run = parse_docker_run(line)

    assert (run.image, run.command) == ("x", ())
