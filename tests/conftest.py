"""What tests of every area share: the folder of real traces, and the installed command line in a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, settings

CORPUS_VARIABLE = "GOLDENTRACE_CORPUS"

KEPT_VARIABLES = ("PATH", "TMPDIR", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE")
"""All that a started program sees of this environment. A list of what to keep, not of what to drop: no variable of a CI
service, of a user's configuration or of a colour setting can then decide a test."""

# A busy machine decides no test: no deadline, no complaint that drawing was slow. In CI every run draws the same examples.
settings.register_profile(
    "house",
    settings.get_profile("ci" if os.environ.get("CI") else "default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


def is_lack(reason: str) -> bool:
    """Is a test skipped for want of a library or program, where all of them are to be there? In CI a skip hides a fault of
    the set-up: it fails there."""
    return bool(os.environ.get("CI")) and ("is not installed" in reason or "could not import" in reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail the test that lacks something in CI."""
    return _failed_where_lacking((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail the module that lacks something in CI."""
    return _failed_where_lacking((yield))


def _failed_where_lacking(report: Any) -> Any:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple) and is_lack(report.longrepr[2]):
        report.outcome, report.longrepr = "failed", f"{report.longrepr[2]}; in CI nothing may be missing"
    return report


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended: its exit code (negative: the signal that ended it) and what it printed."""

    code: int
    stdout: str
    stderr: str


class Cli(Protocol):
    """See the fixture `cli`."""

    def __call__(
        self,
        *args: str | os.PathLike[str],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes = b"",
        timeout_s: float = 60,
    ) -> Finished: ...


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real traces; skip where none is named, fail where the named one is not there."""
    named = os.environ.get(CORPUS_VARIABLE)
    if not named:
        pytest.skip(f"{CORPUS_VARIABLE} names no folder of real traces")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"{CORPUS_VARIABLE} is {named!r}, which is no folder")
    return folder


@pytest.fixture
def cli(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """Return a function that runs the installed `goldentrace` and returns how it ended.

    cwd: default is `tmp_path`; env: added to a bare environment (KEPT_VARIABLES and an empty home), so `env={"CI": "true"}`
    is how a test plays CI; stdin: never a terminal. A run over its time is ended with all that it started, and fails the test.
    """
    program = Path(sys.executable).with_name("goldentrace")
    home = tmp_path_factory.mktemp("home")

    def run(
        *args: str | os.PathLike[str],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes = b"",
        timeout_s: float = 60,
    ) -> Finished:
        if not program.exists():
            pytest.fail(f"{program} is not installed; run: pip install -e .")
        bare = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        started = subprocess.Popen(
            [program, *args],
            cwd=cwd or tmp_path,
            env=bare | {"HOME": str(home)} | dict(env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            stdout, stderr = started.communicate(stdin.encode() if isinstance(stdin, str) else stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            stdout, stderr = started.communicate()
            pytest.fail(
                f"goldentrace {' '.join(map(str, args))} ran longer than {timeout_s} s\n{text(stdout)}\n{text(stderr)}"
            )
        return Finished(started.returncode, text(stdout), text(stderr))

    return run


def text(data: bytes) -> str:
    """Return the text of what a program printed; a byte that is no UTF-8 stays visible as a surrogate."""
    return data.decode("utf-8", "surrogateescape")
