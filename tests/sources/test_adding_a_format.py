"""The module that docs/adding-a-format.md shows is a whole importer that keeps the page's promises."""

import re
import types
from pathlib import Path

import pytest

from goldentrace.errors import InputError
from goldentrace.sources import registry
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.source import Source
from tests.sources.reading import document_of, read_one, results

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-format.md"


def block(kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Source:
    module = types.ModuleType("shown")
    exec(compile(block("python"), str(PAGE), "exec"), module.__dict__)
    known = registry.sources()
    monkeypatch.setattr(registry, "sources", lambda: (*known, module.SOURCE))
    return module.SOURCE


def test_the_module_of_the_page_reads_the_file_of_the_page(shown: Source) -> None:
    assert registry.detect(document_of(block("json"))) is shown
    trace = read_one(block("json"))
    assert results(trace) == [("7", "ok", "in Graz"), ("8", "unfinished", None)]
    rows = dict(coverage_table(trace).rows())
    assert (rows["calls"], rows["times"], rows["usage"]) == ("2", "yes", "no: the agent does not count tokens")


def test_the_page_names_modules_that_are_there() -> None:
    folder = Path(registry.__file__).parent
    named = re.findall(r"`(\w+\.py)`", PAGE.read_text())
    assert len(named) > 8
    assert all((folder / name).is_file() for name in named)


def test_the_module_of_the_page_refuses_damage(shown: Source) -> None:
    with pytest.raises(InputError):
        read_one(block("json")[:80], "parcel-agent")
