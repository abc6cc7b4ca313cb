"""The shared fixtures: what they give, and that they fail where a test would otherwise pass for nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.house.tracked import ROOT


def outcome(tmp_path: Path, test: str, **env: str) -> str:
    """Return what pytest says of one test that is run with the project's conftest."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(test)
    bare = {name: value for name, value in os.environ.items() if name != "GOLDENTRACE_CORPUS"}
    argv = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    return subprocess.run(
        argv, cwd=tmp_path, env=bare | env, capture_output=True, text=True, check=False, timeout=60
    ).stdout


USES_CORPUS = "def test_it(corpus): assert corpus.is_dir()"


def test_the_corpus_is_a_folder(tmp_path: Path) -> None:
    assert "1 passed" in outcome(tmp_path, USES_CORPUS, GOLDENTRACE_CORPUS=str(tmp_path))


def test_without_a_corpus_its_tests_skip_with_a_reason(tmp_path: Path) -> None:
    said = outcome(tmp_path, USES_CORPUS)
    assert "1 skipped" in said
    assert "GOLDENTRACE_CORPUS names no folder of real traces" in said


def test_a_corpus_that_is_not_there_fails(tmp_path: Path) -> None:
    said = outcome(tmp_path, USES_CORPUS, GOLDENTRACE_CORPUS=str(tmp_path / "gone"))
    assert "1 passed" not in said
    assert "which is no folder" in said


LACKS = {
    "a module": "import pytest\nx = pytest.importorskip('no_such_library')\ndef test_it(): pass",
    "a library": "import pytest\ndef test_it(): pytest.importorskip('no_such', reason='no_such is not installed')",
    "a program": "import pytest\n@pytest.mark.skipif(True, reason='node is not installed')\ndef test_it(): pass",
}


@pytest.mark.parametrize("what", LACKS)
def test_what_is_missing_skips_at_home_and_fails_in_ci(tmp_path: Path, what: str) -> None:
    at_home = outcome(tmp_path, LACKS[what], CI="")
    assert "1 skipped" in at_home
    in_ci = outcome(tmp_path, LACKS[what], CI="true")
    assert "skipped" not in in_ci.rpartition("\n=")[2]
    assert "in CI nothing may be missing" in in_ci
    assert "1 failed" in in_ci or "1 error" in in_ci


def test_other_skips_stay_skips_in_ci(tmp_path: Path) -> None:
    assert "1 skipped" in outcome(tmp_path, USES_CORPUS, CI="true")


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program that stands where the installed `goldentrace` would, and says what it was given."""
    program = tmp_path / "bin/goldentrace"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, sys, time\n"
        "if sys.argv[1:] == ['hang']: time.sleep(600)\n"
        "print(sorted(os.environ), sys.argv[1:], os.getcwd(), sys.stdin.read(), sep='|')\n"
        "print('to stderr', file=sys.stderr)\n"
        "sys.exit(3)\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    return program


def test_a_program_runs_in_a_bare_environment(
    played: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "GITHUB_ACTIONS", "NO_COLOR", "GOLDENTRACE_OPT_PROFILE"):
        monkeypatch.setenv(name, "1")
    done = cli("diff", tmp_path, env={"GITLAB_CI": "true"}, stdin="from stdin")
    names, args, folder, stdin = done.stdout.rstrip("\n").split("|")
    assert done.code == 3
    assert done.stderr == "to stderr\n"
    assert "'GITLAB_CI'" in names
    assert "'HOME'" in names
    assert not any(f"'{name}'" in names for name in ("CI", "GITHUB_ACTIONS", "NO_COLOR", "GOLDENTRACE_OPT_PROFILE"))
    assert args == str(["diff", str(tmp_path)])
    assert (folder, stdin) == (str(tmp_path), "from stdin")


def test_a_program_that_hangs_is_ended(played: Path, cli: Cli) -> None:
    with pytest.raises(pytest.fail.Exception, match="longer than"):
        cli("hang", timeout_s=0.5)
