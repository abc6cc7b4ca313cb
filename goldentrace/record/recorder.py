"""The recorder for agents in Python: what an agent's author says, and what is read off its wrapped tools.

    with Recorder() as rec:
        tools = rec.wrap_tools(TOOLS)
        with rec.turn(model="…"):
            tools["charge_card"](order_id="ord_1", amount_cents=499)
        rec.end("success", "final_answer")

Nothing here raises into the agent except LimitReached, and, before the run begins, ConfigError for what the author got
wrong. Hidden reasoning is never recorded. This module must not know a provider's SDK.
"""

import contextlib
import contextvars
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar, get_args, overload

import msgspec

import goldentrace
from goldentrace.errors import ConfigError
from goldentrace.model.event import (
    DECISION_KINDS,
    FORMAT,
    MAIN_AGENT,
    Access,
    DecisionKind,
    Origin,
    Outcome,
    StopReason,
    TraceEnd,
    TraceStart,
)
from goldentrace.record.attempt import Attempt
from goldentrace.record.calls import GivenId
from goldentrace.record.failures import classify
from goldentrace.record.limits import LIMITS_VARIABLE, LimitReached, Limits, Meter, read_limits
from goldentrace.record.payloads import STORAGE_VARIABLE, Payloads, StoragePolicy, read_storage
from goldentrace.record.session import TRACE_VARIABLE, Session
from goldentrace.record.statements import Statements, check
from goldentrace.record.tools import describe_tool, name_of
from goldentrace.record.turn import Turn, turn_fields
from goldentrace.record.wrap import call_of, wrap_registry, wrap_tool
from goldentrace.store.clock import Clock

SCENARIO_VARIABLE: Final = "GOLDENTRACE_SCENARIO"
SEED_VARIABLE: Final = "GOLDENTRACE_SEED"

Function = TypeVar("Function", bound=Callable[..., Any])
Wrapped = TypeVar("Wrapped")


class Recorder(Statements):
    """Records one run. A context manager, in both kinds of `with`; the file is opened by entering it or by the first
    event.

    path: the file; default $GOLDENTRACE_TRACE, and without either nothing is recorded (limits hold all the same). A
    trace that an earlier run left at a path given here is replaced; where $GOLDENTRACE_TRACE names the file, this
    process takes part in a run that somebody else started, and adds to it. scenario_id, seed: default from the runner.
    states: the decision kinds that this agent states, default all. clock: has `time_ns()` and `monotonic_ns()`. redact:
    applied to every plain JSON value before it is written, beside the built-in detectors of secrets. keep_results,
    keep_messages: False records digests of results, and no text of messages. limits: see `Limits`. agent: the name of
    the main agent. Raises: ConfigError for limits, states or variables that are wrong.
    """

    def __init__(  # noqa: PLR0913 - what a person sets once, each with a default
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        scenario_id: str | None = None,
        seed: int | None = None,
        states: Sequence[DecisionKind] | None = None,
        clock: Clock = time,
        redact: Callable[[Any], Any] | None = None,
        keep_results: bool = True,
        keep_messages: bool = True,
        attributes: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | Limits | None = None,
        agent: str = MAIN_AGENT,
    ) -> None:
        unknown = [kind for kind in states or () if kind not in DECISION_KINDS]
        if unknown:
            raise ConfigError(f"no decision: {', '.join(unknown)}", next_step=f"there are {', '.join(DECISION_KINDS)}")
        payloads = Payloads(_storage(keep_results=keep_results, keep_messages=keep_messages), redact)
        cwd, home, tmp = _folders()
        header = TraceStart(
            format=FORMAT,
            trace_id=uuid.uuid4().hex,
            scenario_id=scenario_id or os.environ.get(SCENARIO_VARIABLE),
            seed=_seed() if seed is None else seed,
            source=f"goldentrace-recorder/{goldentrace.__version__}",
            states=None if states is None else list(states),
            attributes=None if attributes is None else payloads.plain(dict(attributes)),
            cwd=cwd,
            home=home,
            tmp=tmp,
        )
        named = os.environ.get(TRACE_VARIABLE)
        file = None if path is None and not named else Path(path if path is not None else str(named)).absolute()
        session = Session(
            file,
            header,
            clock=clock,
            payloads=payloads,
            meter=Meter(read_limits(limits, os.environ.get(LIMITS_VARIABLE))),
            agent=agent,
            is_new_run=not named or file != Path(named).absolute(),
        )
        super().__init__(session)
        self._is_ended = False

    @property
    def is_recording(self) -> bool:
        """Is there a file that events go to?"""
        return self._session.is_recording

    # --- the run ----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with self._session.guard:
            self._session.open()
            self._session.calls.move_to(self._session.calls.scope())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the run, if `end` was not called, and close the file. Exceptions go on.

        Without one the outcome is `unknown`. With one: LimitReached is `aborted` with the limit's reason; an interrupt
        or a cancellation `aborted`, `user_cancelled`; an exception that came out of a wrapped tool `failed`,
        `tool_error`; any other one `failed`, `unknown`.
        """
        with self._session.guard:
            self._session.close(self._end_for(error))

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def end(self, outcome: Outcome = "unknown", stop_reason: StopReason | None = None) -> None:
        """Say how the run ended; at once in the file. stop_reason: default the limit that was reached, else
        `unknown`."""
        with self._session.guard:
            reason = stop_reason or self._session.stop_reason or "unknown"
            check("outcome", outcome, get_args(Outcome))
            check("stop_reason", reason, get_args(StopReason))
            if self._is_ended:
                self._session.say("the run was ended twice; the first end counts")
                return
            self._is_ended = True
            self._session.end(TraceEnd(outcome=outcome, stop_reason=reason))

    def close(self) -> None:
        """Close the file of a recorder that is not used as a context manager; the interpreter does it too, as it
        ends."""
        self.__exit__(None, None, None)

    def _end_for(self, error: BaseException | None) -> TraceEnd:
        reason = self._session.stop_reason or "unknown"
        if isinstance(error, BaseExceptionGroup):  # of a task group: a limit speaks for it, else the first one
            error = _first_of(error.subgroup(LimitReached) or error)
        if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
            return TraceEnd(outcome="unknown", stop_reason=reason)
        if isinstance(error, LimitReached):
            return TraceEnd(outcome="aborted", stop_reason=error.stop_reason)
        if classify(error, 0).status == "cancelled":
            return TraceEnd(outcome="aborted", stop_reason="user_cancelled")
        is_of_tool = call_of(error) is not None
        return TraceEnd(outcome="failed", stop_reason="tool_error" if is_of_tool else reason)

    # --- turns, agents, where code stands ---------------------------------------------------------------------------

    def turn(
        self,
        *,
        model: str | None = None,
        finish_reason: str | None = None,
        usage: Any = None,
        input_call_ids: Sequence[str] | None = None,
        parallel: bool = False,
    ) -> Turn:
        """Return a turn to enter around one model response and what it causes: `with rec.turn() as turn:`.

        What only the response tells can be given in it, before its first call: `turn.response(model=…, usage=…)`.
        usage: a mapping or a provider's usage object; input_call_ids: the calls whose results are in the request;
        parallel: the agent runs the calls that one response asks for at the same time, so that they are one batch
        however quick they are, until the agent's next turn begins. Entering raises LimitReached.
        """
        fields: dict[str, Any] = {}
        with self._session.guard:
            fields = turn_fields(model, finish_reason, usage, input_call_ids)
        return Turn(self._session, fields, self._session.calls.new_id("batch") if parallel else None)

    @contextlib.contextmanager
    def agent(self, name: str) -> Iterator[None]:
        """Record what happens in the block as another agent's. name: its role, never a random id."""
        with self._standing(agent=name, last=None, retry=None):
            yield

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Say that the calls of the block were proposed together. Without it a batch is what overlaps: calls that all
        started before any of them had ended, which quick ones do in one run and not in the next."""
        with self._standing(batch=self._session.calls.new_id("batch")):
            yield

    @contextlib.contextmanager
    def origin(self, who: Origin) -> Iterator[None]:
        """Say who asks for the calls of the block, where it is not the model: the harness, an SDK, the transport."""
        with self._standing(origin=who):
            yield

    @contextlib.contextmanager
    def call_id(self, call_id: str) -> Iterator[None]:
        """Give the next wrapped call in the block the id that the model's response gave it. After a failure the next
        call of that tool in the block is its next attempt."""
        with self._standing(given_id=GivenId(call_id)):
            yield

    @contextlib.contextmanager
    def _standing(self, **changes: Any) -> Iterator[None]:
        calls = self._session.calls
        outer = calls.scope()
        calls.move_to(msgspec.structs.replace(outer, **changes))
        try:
            yield
        finally:
            inner = calls.scope()
            calls.move_to(msgspec.structs.replace(outer, last=inner.last, retry=inner.retry))

    def carry(self, function: Function) -> Function:
        """Return the function bound to where this code stands, for a thread that would not know:
        `pool.submit(rec.carry(f))`.

        Tasks and `asyncio.to_thread` know by themselves; so does any thread while a single turn is open.
        """
        context = contextvars.copy_context()
        return partial(lambda *args, **kwargs: context.copy().run(function, *args, **kwargs))  # type: ignore[return-value]

    # --- tools ------------------------------------------------------------------------------------------------------

    @overload
    def wrap_tools(self, tools: Mapping[str, Any], *, ignore: Collection[str] = ()) -> dict[str, Any]: ...
    @overload
    def wrap_tools(self, tools: Sequence[Any], *, ignore: Collection[str] = ()) -> list[Any]: ...
    def wrap_tools(self, tools: Any, *, ignore: Collection[str] = ()) -> dict[str, Any] | list[Any]:
        """Return a registry whose tools are recorded: a dict of name -> tool, or a list of tools that have a name. A
        tool is a callable, or a dict or object that holds one and says about it.

        Read from a dict's keys or an object's attributes: callable (func, function, fn, handler, coroutine; `_run`,
        `_arun` of a LangChain class), access, resource, idempotency_key, destructive. ignore: parameters that are no
        arguments of the calls; those that LangChain and LangGraph fill are left out anyway. Raises: ConfigError, also
        where nothing is recorded, for what is no tool.
        """
        return wrap_registry(self._session, tools, ignore)

    def tool(
        self,
        *,
        name: str | None = None,
        access: Access | None = None,
        resource: str | None = None,
        idempotency_key: str | None = None,
        destructive: bool = False,
        ignore: Collection[str] = (),
    ) -> Callable[[Wrapped], Wrapped]:
        """Decorate a tool: a function, or an object that holds one, as another decorator leaves it.

        name: default its own; resource, idempotency_key: templates over its arguments, `order:{order_id}`; ignore: as
        for `wrap_tools`. Raises: ConfigError, also where nothing is recorded, for what is no tool, for a template or an
        access that is wrong.
        """

        def decorate(source: Wrapped) -> Wrapped:
            tool = describe_tool(
                name or name_of(source) or type(source).__name__, source, ignore, access=access, resource=resource,
                idempotency_key=idempotency_key, destructive=destructive or None,
            )  # fmt: skip
            return wrap_tool(self._session, source, tool)  # type: ignore[no-any-return]

        return decorate

    def attempt(self) -> Attempt:
        """Return a context manager for one try of a retry loop inside a tool: each `with rec.attempt():` after the
        first is the call's next attempt, one at a time. A loop around a tool needs none of it: after
        `rec.decision("retry")` the next call of that tool is the next attempt. Entering raises LimitReached.
        """
        return Attempt(self._session)


def _first_of(group: BaseExceptionGroup[Any]) -> BaseException:
    """The first exception of a group that is no group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _storage(*, keep_results: bool, keep_messages: bool) -> StoragePolicy:
    """What may be stored: the stricter of the agent's own word and the runner's."""
    told = read_storage(os.environ.get(STORAGE_VARIABLE))
    results: Literal["keep", "hash"] = told.results if keep_results else "hash"
    messages: Literal["keep", "drop"] = told.messages if keep_messages else "drop"
    return msgspec.structs.replace(told, results=results, messages=messages)


def _seed() -> int | None:
    text = os.environ.get(SEED_VARIABLE, "").strip()
    return int(text) if text.lstrip("-").isdecimal() else None


def _folders() -> tuple[str | None, str | None, str]:
    """The folders that differ from one machine to the next, as far as there are any."""
    cwd = None
    with contextlib.suppress(OSError):
        cwd = str(Path.cwd())
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home raises where there is none
    return cwd, home if home != "~" else None, tempfile.gettempdir()
