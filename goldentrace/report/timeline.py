"""The timeline of one trace for a person: offset, turn, event, call, what came of it, and how long was waited.

Shows what is there, of an incomplete recording too, what the rules found beside the events that they point at, and
where a run stopped. This module must not judge.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from goldentrace.model.finding import Finding
from goldentrace.model.normal import NormalTrace
from goldentrace.model.operation import ApprovalStep, Attempt, DecisionStep, LooseEvent, Operation, Step
from goldentrace.model.trace import Trace
from goldentrace.report.cells import measure, pad
from goldentrace.report.page import Page
from goldentrace.report.rows import status_words
from goldentrace.report.sanitise import terminal
from goldentrace.report.stops import stop_of, stop_words
from goldentrace.report.values import as_json, brief_wait, offset, plural

BAR_FROM_MS: Final = 500
"""A wait from here on has a bar: shorter ones are no pause to a person."""
BAR_COLUMNS: Final = 16
EVENT_COLUMNS: Final = 9
MAX_LABEL: Final = 30


@dataclass(frozen=True, slots=True)
class Moment:
    """One line. order: index of the event in its trace; wait_ms: what was waited before it; line: of the event in its
    file, 0 where unknown."""

    order: int
    at_ms: float | None
    turn: int | None
    event: str
    label: str
    words: str
    wait_ms: float | None = None
    style: str = ""
    line: int = 0


def render_timeline(
    normal: NormalTrace,
    trace: Trace | None,
    *,
    findings: Sequence[Finding] = (),
    native: Mapping[int, str] | None = None,
    width: int = 80,
    color: bool = False,
) -> str:
    """Return the timeline of a trace that was normalized and placed in time; trace: None for a golden; findings: what
    the rules say of the trace; native: line -> what the file has there, to stand above what was made of it."""
    page = Page(width, color=color)
    moments = [moment for operation in normal.operations for moment in _of_operation(operation)]
    moments += [_of_loose(event) for event in normal.loose]
    if trace is not None:
        moments.sort(key=lambda moment: moment.order)
    else:
        moments = _in_file_order(normal)
    _add_head(page, normal, trace)
    page.blank()
    if normal.incomplete is None:
        style = "ok" if normal.outcome == "success" else "bold"
        last = max((moment.order for moment in moments), default=0) + 1
        line = trace.line_of(len(trace.events) - 1) if trace is not None else 0
        moments.append(
            Moment(last, normal.end_ms, None, "end", normal.outcome, normal.stop_reason, style=style, line=line)
        )
    _add_moments(page, moments, _marks(moments, findings), native or {})
    stop = stop_of(normal, trace) if trace is not None else None
    if stop is not None and (words := stop_words(stop)):
        page.wrapped(words, indent=11, style="error", first="  stopped: ")
    if normal.incomplete is not None:
        page.wrapped(normal.incomplete, indent=16, style="error", first="  stopped here: ")
    for note in normal.notes:
        page.wrapped(note, indent=8, style="dim", first="  note: ")
    return page.text()


def _in_file_order(normal: NormalTrace) -> list[Moment]:
    moments: list[Moment] = []
    waiting = list(normal.loose)
    for index, operation in enumerate(normal.operations):
        while waiting and waiting[0].position <= index:
            moments.append(_of_loose(waiting.pop(0)))
        moments += _of_operation(operation)
    return moments + [_of_loose(event) for event in waiting]


def _of_operation(operation: Operation) -> Iterator[Moment]:
    for step in operation.steps:
        yield from _of_step(step, operation)


def _of_step(step: Step, operation: Operation) -> Iterator[Moment]:
    label = operation.label
    if isinstance(step, DecisionStep):
        words = [step.reason or "", f"wait {brief_wait(step.delay_ms)}" if step.delay_ms is not None else ""]
        said = ", ".join(word for word in words if word) + (" (inferred)" if step.inferred else "")
        yield Moment(
            step.index,
            step.at_ms,
            None,
            "decision",
            label,
            f"{step.decision}  {said}".rstrip(),
            style="bold",
            line=step.line,
        )
        return
    if isinstance(step, ApprovalStep):
        style = "error" if step.verdict == "denied" else "bold"
        words_of_approval = step.verdict + (f" by {step.by}" if step.by is not None else "")
        yield Moment(step.index, step.at_ms, None, "approval", label, words_of_approval, style=style, line=step.line)
        return
    assert isinstance(step, Attempt)
    is_first = step.number == 1
    parts = [f"by {step.origin}"] if step.origin != "model" else []
    parts += [f"within {operation.parent}"] if operation.parent is not None and is_first else []
    parts += [f"batch {operation.batch}"] if operation.batch is not None and is_first else []
    turn = operation.turn if is_first else None
    event = "call" if is_first else f"attempt {step.number}"
    yield Moment(
        step.call_index, step.started_ms, turn, event, label, ", ".join(parts), step.gap_ms, line=step.call_line
    )
    if step.status is None:
        yield Moment(step.call_index, None, None, "", label, "no result", style="error", line=step.call_line)
        return
    owed = f"  owed {brief_wait(step.owed_ms)}" if step.owed_ms is not None else ""
    style = "" if step.status == "ok" else "error"
    order = step.result_index if step.result_index is not None else step.call_index
    yield Moment(
        order, step.ended_ms, None, "result", label, status_words(step) + owed, style=style, line=step.result_line
    )


def _marks(moments: list[Moment], findings: Sequence[Finding]) -> dict[int, list[tuple[str, str]]]:
    """Position of a moment -> (text, style) to stand below it. A line without a moment is marked at the one before;
    where the source has no lines, the last moment of the operation is marked."""
    places: dict[int, int] = {}
    for position, moment in enumerate(moments):
        places[moment.line] = position
    lines = sorted(line for line in places if line > 0)
    last_of = {moment.label: position for position, moment in enumerate(moments)}
    marks: dict[int, list[tuple[str, str]]] = {}
    for finding in findings:
        style = finding.severity if finding.accepted is None else "dim"
        accepted = f" (accepted: {finding.accepted})" if finding.accepted is not None else ""
        of = len(finding.lines)
        names = finding.labels if len(finding.labels) == of else ("",) * of
        for number, (line, name) in enumerate(zip(finding.lines, names, strict=True), start=1):
            if line and lines:
                position = places[lines[max(bisect_right(lines, line) - 1, 0)]]
            else:
                position = last_of.get(name, len(moments) - 1)
            if number == of:
                text = f"^ {finding.code} {finding.name}: {finding.message}{accepted}"
            else:
                text = f"^ {finding.code} {finding.name}, {number} of {of}: see {_last_place(finding)}"
            marks.setdefault(position, []).append((text, style))
    return marks


def _last_place(finding: Finding) -> str:
    return f"line {finding.lines[-1]}" if finding.lines[-1] else finding.labels[-1] if finding.labels else "below"


def _of_loose(event: LooseEvent) -> Moment:
    fields = event.fields
    if event.kind == "limit":
        maximum = f" {as_json(fields['max'])}" if fields.get("max") is not None else ""
        return Moment(
            event.index,
            event.at_ms,
            None,
            "limit",
            f"{fields.get('limit')}{maximum}",
            "",
            style="error",
            line=event.line,
        )
    if event.kind == "effect":
        value = as_json(fields["value"]) if "value" in fields else ""
        key = f"{fields['key']}  " if fields.get("key") is not None else ""
        return Moment(
            event.index, event.at_ms, None, "effect", str(fields.get("name")), f"{key}{value}", line=event.line
        )
    delay = f"wait {brief_wait(fields['delay_ms'])}" if fields.get("delay_ms") is not None else ""
    said = ", ".join(word for word in (str(fields.get("reason") or ""), delay) if word)
    return Moment(
        event.index, event.at_ms, None, "decision", str(fields.get("decision")), said, style="bold", line=event.line
    )


def _add_head(page: Page, normal: NormalTrace, trace: Trace | None) -> None:
    turns = len({(operation.agent, operation.turn) for operation in normal.operations if operation.turn is not None})
    words = [plural(len(normal.operations), "call")]
    words += [plural(turns, "turn")] if turns else []
    words += [offset(normal.end_ms).lstrip("+")] if normal.end_ms is not None else []
    tail = "  " + ", ".join(words)
    page.line((page.fit(normal.header.scenario_id or normal.path, measure(tail)), "bold"), tail)
    page.line("  ", page.fit(normal.path, 2))
    if trace is not None and trace.format != "goldentrace/1":
        page.line("  ", f"format {trace.format}")


def _add_moments(
    page: Page, moments: list[Moment], marks: dict[int, list[tuple[str, str]]], native: Mapping[int, str]
) -> None:
    labels = [terminal(moment.label) for moment in moments]
    label_width = min(max(map(measure, labels), default=0), MAX_LABEL, page.width // 3)
    offsets = [offset(moment.at_ms) for moment in moments]
    offset_width = max(map(len, offsets), default=0)
    has_turns = any(moment.turn is not None for moment in moments)
    lead_width = (offset_width + 2 if offset_width else 0) + (6 if has_turns else 0) + EVENT_COLUMNS + 4 + label_width
    longest, columns = _scale(moments, page.width - lead_width)
    turn_before: int | None = None
    waiting = dict(native)
    for position, (moment, label, at) in enumerate(zip(moments, labels, offsets, strict=True)):
        turn = str(moment.turn) if moment.turn is not None and moment.turn != turn_before else ""
        turn_before = moment.turn if moment.turn is not None else turn_before
        lead = (f"  {at.rjust(offset_width)}" if offset_width else "") + (f"  {turn.rjust(4)}" if has_turns else "")
        event = f"  {moment.event.ljust(EVENT_COLUMNS)}  "
        words = f"  {moment.words}" if moment.words else ""
        bar = _bar(moment, longest, columns)
        name = pad(label, label_width)
        if moment.line in waiting:
            page.wrapped(waiting.pop(moment.line), indent=6, style="dim", first=f"{moment.line:>4}  ")
        page.line((lead, "dim"), event, name, (words, moment.style), _waited(moment), (bar, "warning"))
        for text, mark_style in marks.get(position, ()):
            page.wrapped(text, indent=measure(lead) + 4, style=mark_style, first=" " * (measure(lead) + 2))


def _waited(moment: Moment) -> str:
    return f"  waited {brief_wait(moment.wait_ms)} " if moment.wait_ms is not None else ""


def _bar(moment: Moment, longest: float, columns: int) -> str:
    if moment.wait_ms is None or columns < 1 or not _has_bar(moment):
        return ""
    return "#" * max(1, round(columns * moment.wait_ms / longest))


def _has_bar(moment: Moment) -> bool:
    return moment.wait_ms is not None and moment.wait_ms >= BAR_FROM_MS


def _scale(moments: list[Moment], room: int) -> tuple[float, int]:
    """The longest wait, and the columns that its bar takes: one scale for all bars."""
    barred = [moment for moment in moments if _has_bar(moment)]
    words = [measure(moment.words) + 2 if moment.words else 0 for moment in barred]
    taken = max((said + len(_waited(moment)) for said, moment in zip(words, barred, strict=True)), default=0)
    return max((moment.wait_ms or 0.0 for moment in barred), default=0.0), min(BAR_COLUMNS, room - taken)
