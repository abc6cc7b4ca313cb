"""The admin interface, on a port of its own, so that no request of the agent can be taken for one of the runner's.

GET ready, calls, effects, verify, pinned; POST load, reset, stop; `?run=ID` names the run. JSON in and out. This module
must not serve tools.
"""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from goldentrace.codec.canonical import encode
from goldentrace.errors import GoldentraceError
from goldentrace.faults.answer import Answer, refusal
from goldentrace.faults.chaos import pinned_steps
from goldentrace.faults.connection import Connection, Request, RequestError
from goldentrace.faults.engine import Engine
from goldentrace.faults.http import check_origin
from goldentrace.faults.plan import Plan, read_plan
from goldentrace.faults.runs import EXHAUSTED, Run
from goldentrace.faults.verify import verify
from goldentrace.faults.wire import Reply, plain

MAX_CONNECTIONS: Final = 16
_READS: Final = ("ready", "calls", "effects", "verify", "pinned")
_ACTS: Final = ("load", "reset", "stop")


class AdminHandler:
    """Serves the runner. urls: what `ready` tells beside the state; on_load: checks a plan that is to take over."""

    def __init__(
        self,
        engine: Engine,
        urls: Callable[[], dict[str, Any]],
        on_load: Callable[[Plan], None],
        on_stop: Callable[[], None],
    ) -> None:
        self.engine = engine
        self._urls = urls
        self._on_load = on_load
        self._on_stop = on_stop

    async def serve(self, connection: Connection) -> None:
        """Answer the requests of one connection until it ends."""
        try:
            while True:
                request = await connection.read_request()
                if request is None:
                    return
                body = await connection.read_body()
                answer = self._answer(request, body)
                reply = Reply(answer.status, (), encode(answer.value), is_last=not request.keeps_alive)
                sent = await connection.perform(plain(reply))
                if urlsplit(request.target).path == "/stop" and answer.status == 200:
                    self._on_stop()
                if sent.is_closed:
                    return
        except RequestError as error:
            if error.status is not None:
                answer = refusal(error.status, "bad_request", error.what)
                await connection.perform(plain(Reply(answer.status, (), encode(answer.value), is_last=True)))

    def _answer(self, request: Request, body: bytes) -> Answer:
        problem = check_origin(request)
        if problem is not None:
            return problem
        target = urlsplit(request.target)
        name = target.path.strip("/")
        allowed = "GET" if name in _READS else "POST" if name in _ACTS else None
        if allowed is None:
            return refusal(404, "not_found", f"there is: {', '.join((*_READS, *_ACTS))}")
        if request.method != allowed:
            return refusal(405, "method_not_allowed", f"{name} takes {allowed}")
        run_id = parse_qs(target.query).get("run", [self.engine.default_run])[0]
        if name == "load":
            return self._load(body)
        if name == "stop":
            return Answer(200, {"state": "stopping"})
        run = self.engine.runs.get(run_id)
        if run is None:
            return refusal(404, "unknown_run", f"nothing was heard of the run {run_id!r}")
        if name == "reset":
            self.engine.reset(run_id)
            return Answer(200, {"state": "serving"})
        return Answer(200, getattr(self, f"_{name}")(run))

    def _load(self, body: bytes) -> Answer:
        try:
            plan = read_plan(body, "request")
            self._on_load(plan)
        except GoldentraceError as error:
            value = {
                "what": error.what,
                "where": str(error.where) if error.where else None,
                "next_step": error.next_step,
            }
            return Answer(400, {"error": value})
        self.engine.load(plan)
        return Answer(200, {"plan": plan.name})

    def _ready(self, run: Run) -> dict[str, Any]:
        limit = run.limit
        return {
            "state": "serving" if limit is None else "stopped", "plan": self.engine.plan.name, "run": run.run_id,
            **self._urls(),
            "limit": None if limit is None else {"limit": limit.limit, "value": limit.value, "max": limit.max},
            "failures": _failures(run), "calls": run.total,
        }  # fmt: skip

    def _calls(self, run: Run) -> dict[str, Any]:
        return {"calls": list(run.log), "total": run.total, "refused_connections": run.refused_connections}

    def _effects(self, run: Run) -> dict[str, Any]:
        entries = [
            {"name": entry.name, "value": entry.value, "key": entry.key, "tool": entry.tool, "n": entry.n}
            for entry in run.ledger.effects
        ]
        return {"effects": entries}

    def _verify(self, run: Run) -> dict[str, Any]:
        verdict = verify(self.engine.plan.effects, [(entry.name, entry.value) for entry in run.ledger.effects])
        return {
            "is_ok": verdict.is_ok and not run.failures,
            "effects": verdict.counts,
            "differences": [
                {"name": item.name, "expected": item.expected, "actual": item.actual} for item in verdict.differences
            ],
            "failures": _failures(run), "failure_count": run.failure_count,
            "refused_connections": run.refused_connections,
            "unused_steps": unused_steps(run),
        }  # fmt: skip

    def _pinned(self, run: Run) -> dict[str, Any]:
        return {
            "tools": {
                name: {"steps": pinned_steps(step for step in met if step is not EXHAUSTED)}
                for name, met in run.met.items()
                if met
            }
        }


def _failures(run: Run) -> list[dict[str, str]]:
    return [{"what": failure.what, "next_step": failure.next_step} for failure in run.failures]


def unused_steps(run: Run) -> dict[str, int]:
    """Return tool -> how many calls of its steps never came; only tools with any left."""
    left: dict[str, int] = {}
    for tool in run.plan.tools.values():
        missing = sum(step.times for step in tool.steps) - run.counts[tool.name]
        if missing > 0:
            left[tool.name] = missing
    return left
