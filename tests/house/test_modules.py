"""Modules are nouns with a reason to exist, and short; the pure layers ask for nothing that was not passed in.

ruff checks that docstrings are there; here is what no linter knows.
"""

import ast
from pathlib import Path

import pytest

from tests.house.tracked import ROOT, tracked

MODULES = tracked("goldentrace/*.py")
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "base", "misc", "common"}
MAX_LINES = 400
LONG_BECAUSE = "Long because"
"""How the module docstring of a longer file begins the sentence that says why it is one room."""
PURE = ("model", "match", "normalize", "diff", "rules")
IMPURE_CALLS = {"open", "input", "print"}
IMPURE_METHODS = {"read_text", "read_bytes", "write_text", "write_bytes"}
CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}


def docstring(source: str) -> str:
    """Return the docstring of a module, empty where it has none."""
    return ast.get_docstring(ast.parse(source)) or ""


def is_too_long(source: str) -> bool:
    """Is the file longer than MAX_LINES and gives no reason?"""
    return len(source.splitlines()) > MAX_LINES and LONG_BECAUSE not in docstring(source)


def impurities(source: str) -> list[str]:
    """Return `line: call` for each call that reaches for a file, a clock or a terminal."""
    called = [
        (node.lineno, ast.unparse(node.func)) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
    ]
    return [
        f"{line}: {name}()"
        for line, name in called
        if name in IMPURE_CALLS
        or name.removeprefix("datetime.") in CLOCKS
        or ("." in name and name.rpartition(".")[2] in IMPURE_METHODS)
    ]


@pytest.mark.parametrize("path", [*MODULES, *tracked("ci/*.py"), *tracked("tests/*.py")], ids=str)
def test_no_module_is_named_for_nothing(path: Path) -> None:
    assert not {path.stem, *path.parent.parts} & EMPTY_NAMES, f"{path}: name what it holds"


def test_a_long_module_says_why() -> None:
    long = {
        path: len((ROOT / path).read_text().splitlines()) for path in MODULES if is_too_long((ROOT / path).read_text())
    }
    assert not long, "\n".join(
        f"{path}: {lines} lines; split it, or say in its docstring '{LONG_BECAUSE} …'" for path, lines in long.items()
    )


def test_a_long_module_without_a_reason_is_found() -> None:
    body = "x = 1\n" * MAX_LINES
    assert is_too_long(f'"""A table."""\n{body}')
    assert not is_too_long(f'"""A table.\n\n{LONG_BECAUSE} the table is one.\n"""\n{body}')


@pytest.mark.parametrize("layer", PURE)
def test_the_pure_layers_reach_for_nothing(layer: str) -> None:
    found = [
        f"{path}:{call}"
        for path in tracked(f"goldentrace/{layer}/*.py")
        for call in impurities((ROOT / path).read_text())
    ]
    assert not found, "\n".join(found)


def test_reaching_out_is_found() -> None:
    source = "open('x')\ndatetime.datetime.now()\ndate.today()\nPath('x').read_text()\nclock.now()\nsorted([1])"
    assert impurities(source) == [
        "1: open()",
        "2: datetime.datetime.now()",
        "3: date.today()",
        "4: Path('x').read_text()",
    ]
