"""The bar on stderr while a large file is read."""

import io
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from goldentrace.cli import progress
from goldentrace.cli.progress import reading_bar
from tests.cli.traces import searches, start, write
from tests.conftest import Cli


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(progress, "MIN_BYTES", 100)
    path = tmp_path / "large.jsonl"
    path.write_bytes(b"x" * 1000)
    return path


def test_a_terminal_sees_how_much_is_read(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    with reading_bar(str(large)) as tell:
        assert tell is not None
        tell(500)
        tell(1000)
    more = Terminal()
    monkeypatch.setattr(sys, "stderr", more)
    with reading_bar(str(large)) as tell:
        assert tell is not None
        tell(2000)  # a compressed file: more comes out than it has
    assert "2.0/? kB" in more.getvalue()
    assert "1.0/1.0 kB" in stderr.getvalue()


@pytest.mark.parametrize("case", ["no terminal", "quiet", "small", "standard input", "missing"])
def test_else_there_is_none(case: str, large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO() if case == "no terminal" else Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    if case == "small":
        monkeypatch.setattr(progress, "MIN_BYTES", 1001)
    path = {"standard input": "-", "missing": "nothing.jsonl"}.get(case, str(large))
    with reading_bar(path, is_quiet=case == "quiet") as tell:
        assert tell is None
    assert stderr.getvalue() == ""


def test_what_is_written_beside_a_bar_is_the_same(tmp_path: Path, here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.jsonl", searches(3))
    plain = here("import", "a.jsonl").stdout
    monkeypatch.setattr(progress, "MIN_BYTES", 1)
    assert here("import", "a.jsonl").stdout == plain


@pytest.mark.parametrize(
    "command",
    ["lint", "show", "stats", "normalize", "cache simulate", "import", "lint --trace orders", "stats --trace orders"],
)
@pytest.mark.parametrize("is_quiet", [False, True])
def test_every_reader_shows_the_bar(
    command: str, is_quiet: bool, tmp_path: Path, here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.jsonl", [start(trace_id="orders"), *searches(3)[1:]])
    asked: list[tuple[str, bool]] = []

    def bar(path: str, *, is_quiet: bool = False) -> AbstractContextManager[None]:
        asked.append((path, is_quiet))
        return nullcontext()

    for place in ("goldentrace.cli.progress.reading_bar", "goldentrace.cli.importing.reading_bar"):
        monkeypatch.setattr(place, bar)
    assert here(*command.split(), "a.jsonl", *(["-q"] if is_quiet else [])).code in (0, 2)
    assert asked == [("a.jsonl", is_quiet)]


def test_the_table_of_an_import_is_coloured_on_a_terminal_and_nothing_is_escaped(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(3))
    done = cli("import", "a.jsonl", cwd=tmp_path, env={"FORCE_COLOR": "1"})
    assert "\x1b[" in done.stderr
    assert "\\x1b" not in done.stderr
