"""Every command that goldentrace proposes, in a message, a report, a file that it writes or a page, exists, and so do its
options."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from goldentrace.cli.commands import HELP, main

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "goldentrace"
WRITTEN = re.compile(
    r"(?:^|[`:;,&$] ?|run: )goldentrace +(?P<word>[a-z-]+)(?P<rest>(?:[^`;\n#|)(\".]|\.\S)*)", re.MULTILINE
)
"""The program where a line, a quotation or a clause begins, and what follows it, up to what ends a command in a text."""
PROSE = frozenset({"writes", "is", "itself"})
"""Words that follow the name in a sentence."""
CALLS = (["layout", "command"], ["_layout", "command"], ["command"])
"""What is called with the words of a command that is proposed."""
SPACE = "X"
"""Stands for what a message fills in."""


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module, what is filled in as SPACE; a list of words as one line."""
    tree = ast.parse(path.read_text("utf-8"))
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else SPACE for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.value
        elif isinstance(node, ast.List) and node.elts and word(node.elts[0]) == "goldentrace":
            yield " ".join(map(word, node.elts))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-2:] in CALLS:
            options = [entry for keyword in node.keywords for entry in getattr(keyword.value, "elts", [])]
            if node.args:
                yield " ".join(["goldentrace", *map(word, node.args), *map(word, options)])


def word(node: ast.AST) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else SPACE


def faults(text: str) -> list[str]:
    """Return what a text proposes that does not exist: a command, or an option of one."""
    found = []
    for match in WRITTEN.finditer(text):
        name, rest = match["word"], match["rest"].split(" -- ")[0].split()
        if name not in HELP:
            found += [] if name in PROSE or name.startswith("-") or name == SPACE else [f"no command {match[0]!r}"]
            continue
        command = main.get_command(click.Context(main), name)
        if isinstance(command, click.Group) and rest and (inner := command.commands.get(rest[0])) is not None:
            command = inner
        assert command is not None
        known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", " ".join(rest)):
            found += [] if option in known else [f"no option {option} in {match[0]!r}"]
    return found


MODULES = sorted(PACKAGE.rglob("*.py"))
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "normalizers/*.md", "goldentrace/**/*.md", "goldentrace/**/*.yaml")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_commands_that_a_module_proposes_exist(path: Path) -> None:
    assert [fault for text in texts(path) for fault in faults(text)] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_that_a_page_proposes_exist(path: Path) -> None:
    page = path.read_text("utf-8")
    quoted = re.findall(r"```.*?```|`[^`\n]+`", page, re.DOTALL) if path.suffix == ".md" else [page]
    assert [fault for text in quoted for fault in faults(text)] == []


@pytest.mark.parametrize(
    "source",
    [
        'add(page, ["goldentrace", "review"])',
        'add(page, ["goldentrace", "accept", *options, "--everything"])',
        'raise Error("wrong", next_step=f"make it again: goldentrace redo {name}")',
        'raise Error("wrong", next_step=f"make it again: goldentrace record {name} --again")',
        'say(layout.command("look", name))',
        'say(layout.command("record", name, options=("--look", "3")))',
    ],
)
def test_a_command_that_does_not_exist_is_found(tmp_path: Path, source: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert len([fault for text in texts(path) for fault in faults(text)]) == 1


def test_the_program_has_the_name_that_is_proposed() -> None:
    assert "goldentrace" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
