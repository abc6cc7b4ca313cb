"""States of runs that the OpenAI Agents SDK saves (`RunState.to_json()`): items with call ids, approvals, no times.

The items of a run are those of Responses, each with its agent; which response an item came in tells `model_responses`.
"""

from collections.abc import Iterator
from typing import Any, Final

from goldentrace.model.event import MAIN_AGENT, Outcome
from goldentrace.model.trace import Trace
from goldentrace.sources import openai_responses
from goldentrace.sources.builder import TraceBuilder
from goldentrace.sources.contents import items_of
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_list, as_name, as_object, as_objects, as_text, as_word
from goldentrace.sources.source import Source
from goldentrace.sources.transcript import Answered, Called, Item, Remark, Said

NAME: Final = "openai-agents-state"
_VERSION: Final = "$schemaVersion"
_KEYS: Final = ("current_agent", "generated_items", "original_input")
_OUTPUTS: Final = frozenset({"tool_call_output_item", "handoff_output_item"})
_ABSENT: Final = {
    "times": "states carry no clock", "usage": "the state keeps no response",
    "status": "the output of a function has no flag for failure",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether an object is a state: it names the version of its schema and the items of a run."""
    return any(_is_state(each) for each in head.objects)


def read(document: Document) -> Iterator[Trace]:
    """Yield a trace per state. Raises: InputError where the file is damaged."""
    has_lines = document.is_line_file()
    for line, value in document.records():
        for each in as_objects(value if isinstance(value, list) else [value]):
            if _is_state(each):
                yield _State(document, each, line if has_lines else None).read()


def _is_state(record: dict[str, Any]) -> bool:
    return _VERSION in record and any(key in record for key in _KEYS)


class _State:
    """One state on its way to a trace."""

    def __init__(self, document: Document, state: dict[str, Any], line: int | None) -> None:
        self._state = state
        self._line = line
        trace = as_object(state.get("trace"))
        trace_id = as_name(trace.get("trace_id")) or as_name(trace.get("id"))
        agent = as_object(state.get("current_agent"))
        self._builder = TraceBuilder(
            document, NAME, name=trace_id, trace_id=trace_id, line=line, absent=_ABSENT,
            attributes={
                "schema_version": state.get(_VERSION), "current_agent": agent.get("name"),
                "current_turn": state.get("current_turn"), "max_turns": state.get("max_turns"),
                "workflow_name": trace.get("workflow_name"), "conversation_id": state.get("conversation_id"),
            },
        )  # fmt: skip
        self._responses = as_objects(state.get("model_responses"))
        self._response_of = {
            key: number
            for number, response in enumerate(self._responses)
            for item in as_objects(response.get("output"))
            if (key := _key(item)) is not None
        }
        self._seen_responses: set[int] = set()
        self._verdicts = _verdicts(as_object(as_object(state.get("context")).get("approvals")))
        self._main: str | None = None
        self._response: int | None = None
        self._is_open = False
        self._has_spoken = False

    def read(self) -> Trace:
        given = self._state.get("original_input")
        said: list[Item] = [Said("user", given)] if isinstance(given, str) else items_of(given)
        for item in said:
            self._append(item, MAIN_AGENT)
        for each in as_objects(self._state.get("generated_items")):
            self._item(each)
        for number, response in enumerate(self._responses):
            if number not in self._seen_responses:
                self._open(number, MAIN_AGENT)
                for raw in as_objects(response.get("output")):
                    for item in openai_responses.items(raw):
                        self._append(item, MAIN_AGENT)
        pending = as_word(as_object(self._state.get("current_step")).get("type")) == "next_step_interruption"
        outcome: Outcome = "needs_human" if pending else "unknown"
        is_final = self._has_spoken and not self._builder.has_open_calls
        return self._builder.finish(outcome, "final_answer" if is_final else "unknown")

    def _item(self, each: dict[str, Any]) -> None:
        kind, raw = as_word(each.get("type")), as_object(each.get("raw_item"))
        agent = self._agent(as_text(as_object(each.get("agent")).get("name")))
        items = openai_responses.items(raw) if raw else []
        if kind in _OUTPUTS or any(isinstance(item, Answered) and not item.is_inline for item in items):
            self._is_open = False
        elif kind == "tool_approval_item" and self._builder.has_call(as_name(raw.get("call_id")) or ""):
            return
        elif items:
            number = self._response_of.get(_key(raw) or "")
            if not self._is_open or (number is not None and number != self._response):
                self._open(number, agent)
        for item in items:
            self._append(item, agent)

    def _agent(self, name: str | None) -> str:
        """The agent that acts first is `main`."""
        if self._main is None:
            self._main = name
        return MAIN_AGENT if name is None or name == self._main else name

    def _open(self, number: int | None, agent: str) -> None:
        response = {} if number is None else self._responses[number]
        self._builder.turn(
            usage=openai_responses.usage_of(_plain_usage(response.get("usage"))), agent=agent, line=self._line,
            extra={"response_id": response.get("response_id"), "request_id": response.get("request_id")},
        )  # fmt: skip
        self._response, self._is_open = number, True
        if number is not None:
            self._seen_responses.add(number)

    def _append(self, item: Item, agent: str) -> None:
        if isinstance(item, Said):
            self._has_spoken = item.role == "assistant"
            self._builder.message(item.role, item.text, agent=agent, line=self._line)
        elif isinstance(item, Called):
            self._call(item, agent)
        elif isinstance(item, Answered):
            self._has_spoken = False
            is_denied = self._verdicts.get(item.call_id or "") == "denied"
            self._builder.result(
                item.call_id, value=item.value, status="denied" if is_denied else item.status,
                error_class="denied" if is_denied else item.error_class, tool_name=item.tool_name, extra=item.extra,
                line=self._line,
            )  # fmt: skip
        elif isinstance(item, Remark):
            self._builder.note(item.text, self._line)

    def _call(self, item: Called, agent: str) -> None:
        self._has_spoken = False
        call_id = self._builder.call(
            item.tool_name, call_id=item.call_id, args=item.args, args_text=item.args_text, agent=agent,
            extra=item.extra, line=self._line,
        )  # fmt: skip
        verdict = self._verdicts.get(call_id)
        if verdict is not None:
            self._builder.approval(call_id, "approved" if verdict == "approved" else "denied", line=self._line)


def _key(item: dict[str, Any]) -> str | None:
    """What tells an item of a response: its call id, else its own id."""
    return as_name(item.get("call_id")) or as_name(item.get("id"))


def _verdicts(approvals: dict[str, Any]) -> dict[str, str]:
    """Call id -> verdict; a verdict about all calls of a tool (`true`) names none."""
    found: dict[str, str] = {}
    for about in approvals.values():
        for key, verdict in (("approved", "approved"), ("rejected", "denied")):
            for call_id in as_list(as_object(about).get(key)):
                if isinstance(call_id, str):
                    found[call_id] = verdict
    return found


def _plain_usage(usage: Any) -> Any:
    """The SDK writes the details as a list of one object."""
    counts = as_object(usage)
    details = as_objects(counts.get("input_tokens_details"))
    return {**counts, "input_tokens_details": details[0]} if details else counts


SOURCE: Final = Source(
    NAME, "OpenAI Agents SDK: saved states of runs (RunState)", matches, read,
    notes="no clock; failures are texts; usage only where responses are kept",
)  # fmt: skip
