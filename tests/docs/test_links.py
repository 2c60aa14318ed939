"""What a document points to is there: other documents, their sections, files of the tree, make targets."""

import re
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, ROOT, anchors, blocks, links, spans, text_of

TREE = ("rocmrun", "tests", "scripts", "docs", "schema", "profiles", "bench")
# What the reader is asked to write.
NOT_THERE = {"profiles/serve.toml"}

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    """Every link into the project names a file that exists, and a section that is in it."""
    broken = []
    for link in links(document):
        if link.startswith("https://"):
            continue
        name, _, section = link.partition("#")
        target = document.parent / name if name else document
        if not target.exists() or (section and section not in anchors(target)):
            broken.append(link)

    assert broken == []


@each_document
def test_files_that_are_named_exist(document: Path) -> None:
    """A path of the tree in running text is a path of the tree."""
    named = {
        span for span in spans(document) if re.fullmatch(rf"({'|'.join(TREE)})/[\w./-]+", span)
    }

    assert {path for path in named - NOT_THERE if not (ROOT / path).exists()} == set()


@each_document
def test_make_targets_that_are_named_exist(document: Path) -> None:
    """`make X` in a document is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    shown = [line for block in blocks(document, "console") for line in block.splitlines()]
    text = "\n".join((*spans(document), *(line.removeprefix("$ ") for line in shown)))

    assert set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)) <= targets
