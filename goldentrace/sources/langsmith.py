"""LangSmith runs, of LangGraph and all else that it traces: exports (flat or with `child_runs`), logs of its SDKs.

Runs of the type `tool` are calls, of the type `llm` responses. A tool that failed has its error in the run and its
message only in the outputs of the node around it. The JavaScript SDK posts a run and patches it later; patches may
carry no id, only `dotted_order`, whose last part ends in it.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from goldentrace.errors import NoTraceError, Where
from goldentrace.model.event import ABSENT, Usage
from goldentrace.model.trace import Trace
from goldentrace.sources.contents import items_of
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_count, as_list, as_name, as_number, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source
from goldentrace.sources.spanmeaning import absence, with_response
from goldentrace.sources.steps import History, Kind, Step, failure_class, nanoseconds
from goldentrace.sources.steptrace import TraceInfo, has_activity, read_steps
from goldentrace.sources.toolvalues import answered_of, called_of
from goldentrace.sources.transcript import Answered, Item, Said

NAME: Final = "langsmith"
Run = dict[str, Any]
_KINDS: Final[dict[str, Kind]] = {"tool": "tool", "llm": "model"}
_ID_CHARACTERS: Final = 36
"""Of a UUID at the end of each part of `dotted_order`."""
_EXCEPTION: Final = re.compile(r"\s*([A-Za-z_][\w.]{0,200})\s*[(:]")
ABSENT_REASONS: Final = {
    "usage": "no run counts tokens", "times": "the runs carry no times", "arguments": "inputs were not recorded",
    "results": "outputs were not recorded",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether there are runs, or a log of posts and patches of runs."""
    return any(_is_run(run) for record in head.objects for run in _listed(record))


def read(document: Document) -> Iterator[Trace]:
    """Yield the traces of a file. Raises: InputError where it is damaged, or holds only roots of traces."""
    runs: dict[str, Run] = {}
    lines: dict[str, int | None] = {}
    has_lines = document.is_line_file()
    for line, value in document.records():
        for record in as_objects(value if isinstance(value, list) else [value]):
            for run in _listed(record):
                key = _id_of(run) or f"#{len(runs)}"
                lines.setdefault(key, line if has_lines else None)
                runs[key] = {**runs.get(key, {}), **{name: item for name, item in run.items() if item is not None}}
    traces: dict[str, list[str]] = {}
    for key, run in runs.items():
        traces.setdefault(_trace_of(run, key), []).append(key)
    has_read = False
    for trace_id, keys in traces.items():
        history = History()
        steps = [history.keep(_step(runs[key], key, lines[key])) for key in keys]
        if has_activity(steps):
            _fill_results(steps, [runs[key] for key in keys])
            info = _info(trace_id, [runs[key] for key in keys], steps)
            yield read_steps(document, NAME, steps, replace(info, notes=_lacking(runs, keys)))
            has_read = True
    if runs and not has_read:
        raise NoTraceError(
            "no run of a tool or of a model in it", where=Where(document.name),
            next_step="export the child runs too: client.read_run(id, load_child_runs=True), or list_runs(trace_id=id)",
        )  # fmt: skip


def _lacking(runs: dict[str, Run], keys: list[str]) -> tuple[str, ...]:
    """What to note where the runs of a trace name children that the file does not hold."""
    named = {child for key in keys for child in as_list(runs[key].get("child_run_ids")) if as_name(child) is not None}
    count = len([child for child in named if as_name(child) not in runs])
    return (f"child runs that are named but not in the file: {count}",) if count else ()


def _is_run(run: Run) -> bool:
    return isinstance(run.get("run_type"), str) and ("name" in run or "dotted_order" in run)


def _listed(record: Run) -> Iterator[Run]:
    """The runs that a record holds: itself and its children, a list, or the posts and patches of a log."""
    waiting: list[tuple[Run, str | None]] = []
    for key in ("runs", "post", "patch"):
        waiting += [(each, None) for each in as_objects(record.get(key))]
    if not waiting:
        waiting = [(record, None)]
    while waiting:
        run, outer = waiting.pop(0)
        if outer is not None and run.get("parent_run_id") is None:
            run = {**run, "parent_run_id": outer}
        children = as_objects(run.get("child_runs"))
        if _is_run(run) or "dotted_order" in run or "run_type" in run:
            yield {name: item for name, item in run.items() if name != "child_runs"}
            waiting += [(child, _id_of(run)) for child in children]


def _id_of(run: Run) -> str | None:
    return as_name(run.get("id")) or _dotted(run, -1)


def _dotted(run: Run, part: int) -> str | None:
    parts = (as_text(run.get("dotted_order")) or "").split(".")
    return parts[part][-_ID_CHARACTERS:] or None if len(parts) >= abs(part) else None


def _trace_of(run: Run, key: str) -> str:
    return as_name(run.get("trace_id")) or _dotted(run, 0) or as_name(run.get("parent_run_id")) or key


def _step(run: Run, key: str, line: int | None) -> Step:
    error = as_text(run.get("error"))
    has_failed = error is not None or run.get("status") == "error"
    kind = _KINDS.get(as_word(run.get("run_type")), "other")
    metadata = as_object(as_object(run.get("extra")).get("metadata"))
    step = Step(
        kind, key, as_name(run.get("parent_run_id")) or _dotted(run, -2), as_text(run.get("name")) or "",
        nanoseconds(run.get("start_time")), nanoseconds(run.get("end_time")), line,
        failure=(error or "failed").split("Traceback", 1)[0].strip() if has_failed else None,
        agent=as_text(metadata.get("lc_agent_name")),
        extra={} if kind == "other" else {"run_id": key, "metadata": metadata, "tags": run.get("tags")},
    )  # fmt: skip
    if kind == "tool":
        return _tool(step, run, error, has_failed=has_failed)
    return _model(step, run, metadata) if kind == "model" else step


def _tool(step: Step, run: Run, error: str | None, *, has_failed: bool) -> Step:
    extra = as_object(run.get("extra"))
    call_id = as_name(extra.get("tool_call_id")) or as_name(as_object(extra.get("metadata")).get("tool_call_id"))
    outputs = as_object(run.get("outputs"))
    value = outputs.get("output", outputs or ABSENT)
    answered = answered_of(call_id, value, tool_name=step.name or None)
    step.called = called_of(step.name or None, call_id or answered.call_id, run.get("inputs"), has_input=True)
    if step.ended_ns is None and step.started_ns is not None and not outputs and not has_failed:
        return step
    if has_failed:
        named = _EXCEPTION.match(error or "")
        status, error_class = failure_class(None if named is None else named[1])
        told = {**answered.extra, "error": error}
        answered = replace(answered, status=status, error_class=error_class, extra=told)
    step.answered = answered
    return step


def _model(step: Step, run: Run, metadata: dict[str, Any]) -> Step:
    outputs = as_object(run.get("outputs"))
    with_response(step, items_of(outputs))
    params = as_object(as_object(run.get("extra")).get("invocation_params"))
    step.model = step.model or as_text(metadata.get("ls_model_name")) or as_text(params.get("model"))
    step.sent = items_of(run.get("inputs"))
    step.usage = step.usage or _usage(run, as_object(outputs.get("usage_metadata")))
    return step


def _usage(run: Run, counts: dict[str, Any]) -> Usage | None:
    found = Usage(
        input_tokens=as_count(counts.get("input_tokens", run.get("prompt_tokens"))),
        output_tokens=as_count(counts.get("output_tokens", run.get("completion_tokens"))),
        cached_tokens=as_count(as_object(counts.get("input_token_details")).get("cache_read")),
        cost_usd=as_number(run.get("total_cost")),
    )
    return None if found == Usage() else found


def _fill_results(steps: list[Step], runs: list[Run]) -> None:
    """Give tools whose run has no output the message that the node around them made of it."""
    waiting = [step for step in steps if step.answered is not None and step.answered.value is ABSENT]
    if not waiting:
        return
    told: dict[str, Answered] = {}
    for run in runs:
        if as_word(run.get("run_type")) not in _KINDS:
            for item in items_of(run.get("outputs")):
                if isinstance(item, Answered) and item.call_id is not None:
                    told.setdefault(item.call_id, item)
    for step in waiting:
        found = told.get(step.called.call_id or "")
        if found is not None and step.answered is not None:
            step.answered = replace(step.answered, value=found.value)


def _info(trace_id: str, runs: list[Run], steps: list[Step]) -> TraceInfo:
    root = next((run for run in runs if run.get("parent_run_id") is None and _dotted(run, -2) is None), {})
    inputs = as_object(root.get("inputs"))
    prompt: list[Item] = [item for item in items_of(inputs) if isinstance(item, Said)]
    if not prompt and len(inputs) == 1:
        text = as_text(next(iter(inputs.values())))
        prompt = [Said("user", text)] if text else []
    metadata = as_object(as_object(root.get("extra")).get("metadata"))
    return TraceInfo(
        trace_id, name=trace_id, absent=absence(steps, ABSENT_REASONS), prompt=tuple(prompt),
        attributes={
            "root_run": root.get("name"), "session_name": root.get("session_name"), "tags": root.get("tags"),
            "thread_id": metadata.get("thread_id"),
        },
    )  # fmt: skip


SOURCE: Final = Source(
    NAME, "LangSmith runs (LangGraph, LangChain, wrapped SDKs): exports and SDK logs", matches, read,
    notes="a tool's message may stand in the node around it only",
)  # fmt: skip
