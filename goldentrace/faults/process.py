"""Starts the tool server in a process of its own and talks to it: what the runner and tests hold in hand.

The server ends with this process, whatever ends it. This module must not import the server: that would cost every user
of the handle its libraries.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit

from goldentrace.errors import ConfigError, GoldentraceError, InfrastructureError, Where
from goldentrace.faults.journal import Failure, read_journal
from goldentrace.faults.shim import ENVIRONMENT as CONNECT_FAULTS
from goldentrace.faults.verify import EffectDifference, Verdict
from goldentrace.model.event import AnyEvent

START_S: Final = 15.0
"""For the server to listen; it takes a tenth of a second on an idle machine."""
ADMIN_S: Final = 5.0
STOP_S: Final = 5.0
_MODULE: Final = "goldentrace.faults.child"
_ERROR_BYTES: Final = 2000


class FaultsHandle:
    """A running tool server. url: base of the tools (`POST {url}/tools/NAME`); mcp_url: Streamable HTTP; pid: its
    process."""

    def __init__(
        self, process: subprocess.Popen[bytes], urls: dict[str, Any], run_id: str, journal_path: Path, stderr: Any
    ) -> None:
        self._process = process
        self._stderr = stderr
        self._last: dict[str, Any] | None = None
        self._events: list[AnyEvent] | None = None
        self._cleanup: list[Callable[[], None]] = []
        self._is_stopped = False
        self.url: str = urls["url"]
        self.mcp_url: str = urls["mcp_url"]
        self.admin_url: str = urls["admin_url"]
        self.pid: int = urls["pid"]
        self.run_id = run_id
        self.journal_path = journal_path
        self._connect: list[list[Any]] = urls["connect"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def url_of(self, run_id: str) -> str:
        """Return the base of the tools for another run on the same server."""
        return f"{self.url}/runs/{quote(run_id, safe='')}"

    def environment(self) -> dict[str, str]:
        """Return the variables that an agent finds the server by: GOLDENTRACE_TOOLS_URL, GOLDENTRACE_MCP_URL, and,
        where the plan has `connect:` faults, what the client-side shim reads (faults/shim.py)."""
        found = {"GOLDENTRACE_TOOLS_URL": self.url, "GOLDENTRACE_MCP_URL": self.mcp_url}
        if self._connect:
            found[CONNECT_FAULTS] = json.dumps({"port": urlsplit(self.url).port, "faults": self._connect})
        return found

    def is_alive(self) -> bool:
        """Does the server still run?"""
        return self._process.poll() is None

    def ready(self, run_id: str | None = None) -> dict[str, Any]:
        """Return the state of a run: state (`serving` or `stopped`), limit, failures, calls. Raises:
        InfrastructureError."""
        return self._admin("GET", "ready", run_id)

    def calls(self, run_id: str | None = None) -> list[dict[str, Any]]:
        """Return what each call of a run met and came to, in order of their ends. Raises: InfrastructureError."""
        found: list[dict[str, Any]] = self._admin("GET", "calls", run_id)["calls"]
        return found

    def effects(self, run_id: str | None = None) -> list[dict[str, Any]]:
        """Return the ledger of a run: name, value, key, tool, n. Raises: InfrastructureError."""
        found: list[dict[str, Any]] = self._admin("GET", "effects", run_id)["effects"]
        return found

    def pinned(self, run_id: str | None = None) -> dict[str, Any]:
        """Return the faults that a run met, as `tools: {NAME: {steps}}` of a plan. Raises: InfrastructureError."""
        found: dict[str, Any] = self._admin("GET", "pinned", run_id)["tools"]
        return found

    def reset(self, run_id: str | None = None) -> None:
        """Forget what a run did. Raises: InfrastructureError."""
        self._admin("POST", "reset", run_id)

    def load(self, plan: bytes) -> None:
        """Serve another plan and forget every run. Raises: ConfigError, InfrastructureError."""
        self._admin("POST", "load", None, plan)

    def verify(self) -> Verdict:
        """Return whether the ledger holds what the plan expects; after `stop`, as it was then.

        Raises: InfrastructureError where the server is gone.
        """
        found = self._state()
        differences = tuple(EffectDifference(**item) for item in found["differences"])
        return Verdict(dict(found["effects"]), differences)

    def failures(self) -> list[Failure]:
        """Return why the run has no verdict (unmatched requests, calls beyond the last step, …); empty for a sound
        run."""
        try:
            return [Failure(**item) for item in self._state()["failures"]]
        except InfrastructureError as error:
            return [Failure(error.what, error.next_step)]

    def check(self) -> None:
        """Raise InfrastructureError for the first failure, if there is any."""
        failures = self.failures()
        if failures:
            more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
            raise InfrastructureError(failures[0].what + more, next_step=failures[0].next_step)

    def events(self) -> list[AnyEvent]:
        """Return the run's tool_call, tool_result, effect and limit events so far. Raises: InputError for a damaged
        journal."""
        if self._events is not None:
            return self._events
        if not self._is_stopped and self.is_alive():
            self._admin("GET", "ready", None)  # what was answered before this is written down before this is answered
        return read_journal(self.journal_path).events

    def stop(self) -> None:
        """End the server and everything it holds; its last state stays readable. May be called again."""
        if self._is_stopped:
            return
        self._is_stopped = True
        try:
            if self.is_alive():
                self._last = self._admin("GET", "verify", None)
        except InfrastructureError:
            self._last = None
        assert self._process.stdin is not None, "started with a pipe"
        self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._cleanup:
            self._events = read_journal(self.journal_path).events
        for clean in self._cleanup:
            clean()
        self._stderr.close()

    def _state(self) -> dict[str, Any]:
        if self._is_stopped:
            if self._last is None:
                raise InfrastructureError(
                    "the fault server ended before the run did", next_step="run the scenario again"
                )
            return self._last
        return self._admin("GET", "verify", None)

    def _admin(self, method: str, name: str, run_id: str | None, body: bytes | None = None) -> dict[str, Any]:
        if self._is_stopped and name != "verify":
            raise InfrastructureError("the fault server was stopped", next_step="ask before stop()")
        if not self.is_alive():
            raise InfrastructureError(
                f"the fault server crashed: {_tail(self._stderr)}", next_step="report this as a bug"
            )
        place = urlsplit(self.admin_url)
        connection = HTTPConnection(place.hostname or "", place.port, timeout=ADMIN_S)
        query = f"?run={quote(run_id, safe='')}" if run_id is not None else ""
        try:
            connection.request(method, f"/{name}{query}", body=body)
            response = connection.getresponse()
            value: dict[str, Any] = json.loads(response.read())
        except (OSError, HTTPException, ValueError) as error:
            raise InfrastructureError(f"the fault server does not answer: {error}", next_step="run it again") from None
        finally:
            connection.close()
        if response.status != 200:
            error_value = value.get("error", {})
            what = error_value.get("what") or error_value.get("message", "refused")
            raise (ConfigError if name == "load" else InfrastructureError)(
                what, next_step=error_value.get("next_step", "")
            )
        return value


def start_faults(
    plan_path: Path, *, run_id: str = "run", journal_path: Path | None = None, seed: int | None = None,
    port: int = 0, scenario_id: str | None = None,
) -> FaultsHandle:  # fmt: skip
    """Start a tool server for a plan and return its handle, once it listens.

    run_id: the run that requests without an id belong to; journal_path: where its events go (None: a temporary file);
    seed: in place of the plan's; port: 0 for a free one.
    Raises: ConfigError for the plan, InfrastructureError where the server cannot be started.
    """
    temporary = None if journal_path is not None else Path(tempfile.mkdtemp(prefix="goldentrace-faults-"))
    journal = journal_path if journal_path is not None else (temporary or Path()) / "journal.jsonl"
    options = {
        "plan": str(plan_path), "run_id": run_id, "journal_path": str(journal), "seed": seed, "port": port,
        "scenario_id": scenario_id,
    }  # fmt: skip
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 (the handle closes it)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", _MODULE, json.dumps(options)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=_environment(),
    )  # fmt: skip
    try:
        urls = _first_line(process, stderr)
    except GoldentraceError:
        _discard(process, stderr, temporary)
        raise
    handle = FaultsHandle(process, urls, run_id, journal, stderr)
    if temporary is not None:
        handle._cleanup.append(lambda: shutil.rmtree(temporary, ignore_errors=True))  # noqa: SLF001 (made here)
    return handle


def _environment() -> dict[str, str]:
    """The child imports what this process imports, and nothing that only happens to lie in the working folder."""
    own = str(Path(__file__).parents[2])
    paths = dict.fromkeys([*(path for path in sys.path if path), own])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _first_line(process: subprocess.Popen[bytes], stderr: Any) -> dict[str, Any]:
    assert process.stdout is not None, "started with a pipe"
    deadline_s = monotonic() + START_S
    data = b""
    while not data.endswith(b"\n"):
        left_s = deadline_s - monotonic()
        if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
            raise InfrastructureError(f"the fault server did not start within {START_S:g} s", next_step="run it again")
        part = os.read(process.stdout.fileno(), 65536)
        if not part:
            process.wait()
            raise InfrastructureError(
                f"the fault server did not start: {_tail(stderr)}", next_step="report this as a bug"
            )
        data += part
    line: dict[str, Any] = json.loads(data)
    if "error" in line:
        error = line["error"]
        where = None if error["where"] is None else Where(*error["where"])
        kind = ConfigError if error["kind"] == "config" else InfrastructureError
        raise kind(error["what"], where=where, next_step=error["next_step"])
    return line


def _tail(stderr: Any) -> str:
    """The last line that the server wrote, one clause."""
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - _ERROR_BYTES))
    lines = stderr.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it wrote nothing"


def _discard(process: subprocess.Popen[bytes], stderr: Any, temporary: Path | None) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, stderr):
        if pipe is not None:
            pipe.close()
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)
