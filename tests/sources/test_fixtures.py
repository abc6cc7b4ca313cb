"""Every fixture of every format: told by its content from all others, with the counts that its folder states.

A format's folder `fixtures/MODULE/` holds small files written for these tests and `expected.json`:
{file: {"traces", "calls", "results", "errors", "unanswered"}}, counted by hand.
"""

import json
from pathlib import Path

import pytest

from goldentrace.sources import registry
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.document import open_document
from goldentrace.sources.registry import detect, document_traces, sources

FIXTURES = Path(__file__).with_name("fixtures")
FILES = sorted(path for path in FIXTURES.glob("*/*") if path.name != "expected.json")


def names_of(module: str) -> set[str]:
    return {source.name for source in registry._sources_of(module)}


def test_every_format_has_a_fixture() -> None:
    assert {path.parent.name for path in FILES} == set(registry.MODULES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_fixture_is_recognised_as_its_format_alone(path: Path) -> None:
    head = open_document(path).head
    matching = {source.name for source in sources() if source.matches(head)}
    assert len(matching) == 1
    assert matching <= names_of(path.parent.name)
    assert {detect(open_document(path)).name} == matching


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_fixture_holds_what_its_folder_says(path: Path) -> None:
    expected = json.loads(path.with_name("expected.json").read_text())[path.name]
    tables = [coverage_table(trace) for trace in document_traces(open_document(path))]
    found = {name: sum(getattr(table, name) for table in tables) for name in ("calls", "results", "errors", "unanswered")}
    assert {"traces": len(tables), **found} == expected
