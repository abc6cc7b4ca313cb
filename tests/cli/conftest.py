"""What the tests of commands share."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from goldentrace.cli.ci import VARIABLES
from goldentrace.cli.main import run
from tests.conftest import Cli, Finished


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """As `cli`, but in this process: for the many cases of one thing. What a process alone shows is tested with `cli`."""
    for name in (*VARIABLES, *(name for name in os.environ if name.startswith("GOLDENTRACE_"))):
        monkeypatch.delenv(name, raising=False)

    def call(
        *args: str | os.PathLike[str],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes = b"",
        timeout_s: float = 60,
    ) -> Finished:
        monkeypatch.chdir(cwd or tmp_path)
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        capfd.readouterr()
        code = run([str(arg) for arg in args])
        printed = capfd.readouterr()
        return Finished(code, printed.out, printed.err)

    return call
