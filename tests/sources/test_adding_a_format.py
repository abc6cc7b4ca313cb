"""The module that docs/adding-a-format.md shows is a whole importer, and the steps of CONTRIBUTING.md are those that formats took."""

import re
import tomllib
import types
from pathlib import Path

import pytest

from goldentrace.errors import InputError
from goldentrace.sources import registry
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.source import Source
from tests.sources.reading import document_of, read_one, results

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding-a-format.md"


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


def steps() -> str:
    found = re.search(r"^## Add a format\n(.*?)^## ", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_every_place_that_the_steps_name_is_there() -> None:
    named = [name for name in re.findall(r"`([^`\s]+)`", steps()) if "/" in name]
    assert len(named) > 8
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_format_of_the_steps_took_them_all() -> None:
    (module,) = re.findall(r"^1\. `goldentrace/sources/(\w+)\.py`", steps(), re.MULTILINE)
    assert module in registry.MODULES
    (source,) = registry._sources_of(module)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert source.name in extras
    counted = (ROOT / "tests/corpus/files.yaml").read_text()
    assert f"format: {source.name}," in counted
    assert any(source.name in path.read_text() for path in (ROOT / "tests/corpus/counting").glob("*.py"))


@pytest.mark.parametrize("module", registry.MODULES)
def test_each_format_took_the_steps(module: str) -> None:
    assert (ROOT / "goldentrace/sources" / f"{module}.py").is_file()
    assert (ROOT / "tests/sources/fixtures" / module / "expected.json").is_file()
    texts = [path.read_text() for path in (ROOT / "tests/sources").glob("test_*.py")]
    names = {module, *(source.name for source in registry._sources_of(module))}
    assert any(re.search(rf"\b{name}\b", text) for text in texts for name in names)
