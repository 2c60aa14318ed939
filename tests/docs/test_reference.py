"""Nothing that a user can meet is without its section: errors, grants, words of plans."""

import json
import re
from pathlib import Path

import pytest

from rocmrun.__main__ import run
from rocmrun.core.exposure.rows import ROWS
from rocmrun.core.exposure.score import VERSION
from rocmrun.core.grants import KINDS, parse_grant
from rocmrun.core.host_json import host_to_json
from rocmrun.errors import all_slugs
from scripts.docs.session import mi300x_host
from tests.docs.documents import DOCUMENTS, ROOT, sections, spans, text_of

ERRORS = ROOT / "docs" / "errors.md"
GRANTS = ROOT / "docs" / "grants.md"
ONLY_PLANS = "What only plans say"
# What stands for a value of your own in the spelling of a grant.
PLACEHOLDER = re.compile(r"\b(NAME|FILE|PATH|KEY|N|SOFT|TARGET)\b")


def test_every_error_has_its_section() -> None:
    """One anchor a slug, in the order of the tree; no section is left of a slug that is gone."""
    assert list(all_slugs()) == list(sections(ERRORS))


@pytest.mark.parametrize("slug", all_slugs())
def test_an_error_says_what_to_do(slug: str) -> None:
    """More than a heading."""
    assert len(sections(ERRORS)[slug].split()) > 8


def test_every_kind_of_grant_has_its_section() -> None:
    """And every section but the two about all of them is about a kind."""
    assert {*KINDS, "Never", ONLY_PLANS} == set(sections(GRANTS))


@pytest.mark.parametrize("kind", KINDS)
def test_a_grant_says_what_it_gives_exposes_and_what_is_narrower(kind: str) -> None:
    """The three things to know before writing one down, and its spelling."""
    section = sections(GRANTS)[kind]

    assert [
        f"- **{word}:**" for word in ("Gives", "May want it", "Exposes", "Narrower")
    ] == re.findall(r"^- \*\*(?:Gives|May want it|Exposes|Narrower):\*\*", section, re.MULTILINE)
    assert f"`{kind}:" in section


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_grants_are_spelled_right(document: Path) -> None:
    """What reads as a grant in running text is one."""
    words = [span for span in spans(document) if span.partition(":")[0] in KINDS and ":" in span]

    for word in words:
        if not PLACEHOLDER.search(word) and word != "network:bridge":
            assert word == str(parse_grant(word))


def test_every_word_of_a_plan_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan with ports, mounts, secrets and a restart lists nothing that the page does not name."""
    saved = {"v": 1, "ok": True, **host_to_json(mi300x_host())}
    (tmp_path / "host.json").write_text(json.dumps(saved), encoding="utf-8")
    (tmp_path / "job.toml").write_text(
        'extends = "vllm-serve"\n[container]\nrestart = "on-failure:3"\n'
        'tmpfs = { "/scratch" = "1GiB" }\n[[privileges]]\ngrant = "ulimit:memlock=-1"\nreason = "RDMA"\n',
        encoding="utf-8",
    )

    code = run(
        ["plan", f"{tmp_path}/job.toml", "--offline", "--host", f"{tmp_path}/host.json",
         "--set", f"model_dir={tmp_path}", "-e", "HF_TOKEN", "--json"]
    )  # fmt: skip

    said = capsys.readouterr()
    assert code == 0, said.err
    planned = {grant["what"].partition(":")[0] for grant in json.loads(said.out)["plan"]["grants"]}
    named = {word.partition(":")[0] for word in re.findall(r"`([\w-]+:[^`]+)`", text_of(GRANTS))}
    assert {"port", "env-from", "restart", "tmpfs", "shm", "mount", "network"} <= planned
    assert planned <= named


def test_every_row_of_the_exposure_table_is_documented() -> None:
    """Every row that the score has, in its order, with its weight; and its version."""
    text = text_of(ROOT / "docs" / "exposure.md")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE)

    assert [(kind.id, str(kind.weight)) for kind in ROWS] == rows
    assert f"`{VERSION}`" in text


def test_the_changelog_has_room_for_what_comes() -> None:
    """Unreleased comes first, and is not empty."""
    heading, text = next(iter(sections(ROOT / "CHANGELOG.md").items()))

    assert heading == "Unreleased"
    assert re.search(r"^- ", text, re.MULTILINE)
