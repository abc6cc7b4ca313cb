"""Decisions say what was chosen and in which context; a changelog fragment is one short paragraph for a user."""

import re
from pathlib import Path

import pytest

from tests.house.tracked import ROOT, tracked

DECISIONS = [path for path in tracked("ci/decisions/*.md") if path.name != "README.md"]
FRAGMENTS = [path for path in tracked("ci/changelog/*.md") if path.name != "README.md"]
HEADINGS = ("Context", "Choice")
MAX_FRAGMENT_CHARACTERS = 400


def faults(text: str) -> list[str]:
    """Return what a decision lacks."""
    first = text.lstrip().splitlines()[:1]
    lacking = [] if first and re.match(r"# \S", first[0]) else ["a title: `# …` in its first line"]
    for heading in HEADINGS:
        start = rf"^(?:## {heading}\b|\*\*{heading}\b[^*\n]*\*\*|{heading}: *)"
        section = re.search(rf"{start}(.*?)(?=^## |^\*\*\w+|\Z)", text, re.MULTILINE | re.DOTALL)
        if section is None or not section[1].strip(" :.\n"):
            lacking.append(f"{heading}, with a text")
    return lacking


@pytest.mark.parametrize("path", DECISIONS, ids=str)
def test_a_decision_is_complete(path: Path) -> None:
    assert faults((ROOT / path).read_text()) == []


@pytest.mark.parametrize("path", FRAGMENTS, ids=str)
def test_a_fragment_is_one_paragraph(path: Path) -> None:
    text = (ROOT / path).read_text().strip()
    assert text
    assert "\n\n" not in text
    assert len(text) <= MAX_FRAGMENT_CHARACTERS


def test_an_incomplete_decision_is_found() -> None:
    assert faults("# A title\n\n## Context\nx\n\n## Choice\ny\n") == []
    assert faults("A title\n\n## Context\n\n## Choice\ny\n") == [
        "a title: `# …` in its first line",
        "Context, with a text",
    ]
