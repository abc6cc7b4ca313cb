"""What may be stored of events that something else wrote."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.canonical import decode, encode_raw
from goldentrace.model.config import RecordPolicy
from goldentrace.model.event import (
    AnyEvent,
    Approval,
    Decision,
    Effect,
    Limit,
    Message,
    ModelTurn,
    ToolCall,
    ToolResult,
    TraceEnd,
    TraceStart,
)
from goldentrace.model.profile import Redact, RedactionRule
from goldentrace.store.storage import Storage

SECRET = "sk-" + "a1B2" * 10


def test_secrets_are_replaced_wherever_they_stand() -> None:
    events: list[AnyEvent] = [
        ToolCall(call_id="c", tool_name="t", args=encode_raw({"a": [SECRET]}), args_raw=SECRET, idempotency_key=SECRET),
        ToolResult(call_id="c", status="ok", result=encode_raw({"password": "hunter2", "b": f"x {SECRET}"})),
        Message(role="user", text=f"use {SECRET}"),
    ]
    call, result, message = Storage().events(events)
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert isinstance(message, Message)
    assert decode(call.args) == {"a": ["<secret:1>"]}
    assert (call.args_raw, call.idempotency_key, message.text) == ("<secret:1>", "<secret:1>", "use <secret:1>")
    assert decode(result.result) == {"password": "<secret:2>", "b": "x <secret:1>"}


def test_no_field_that_an_importer_fills_keeps_a_secret() -> None:
    events: list[AnyEvent] = [
        TraceStart(format="goldentrace/1", attributes={"env": {"KEY": SECRET}}),
        ToolCall(
            call_id="c",
            tool_name="t",
            resource=f"db/{SECRET}",
            extra={"headers": {"authorization": f"Bearer {SECRET}"}},
        ),
        ToolResult(call_id="c", status="error", extra={"error": f"401 for {SECRET}", "error_data": [SECRET]}),
        Decision(decision="retry", reason=f"429 for {SECRET}"),
        Approval(call_id="c", verdict="denied", by=f"token {SECRET}"),
        Effect(name="charge", key=SECRET, value=encode_raw({"by": SECRET})),
        ModelTurn(extra={"response_id": SECRET}),
        Limit(limit="max_turns", extra={"told": SECRET}),
        TraceEnd(outcome="failed", stop_reason="unknown", extra={"failed_requests": [{"error": SECRET}]}),
    ]
    stored = Storage().events(events)
    assert SECRET not in repr(stored)
    assert [type(event) for event in stored] == [type(event) for event in events]


def test_what_holds_no_secret_is_the_same_object() -> None:
    events: list[AnyEvent] = [ToolCall(call_id="c", tool_name="t", args=encode_raw({"a": 1}))]
    assert Storage().events(events) is events


def test_a_rule_of_the_user_counts() -> None:
    redact = Redact(rules=[RedactionRule(name="order", pattern=r"ORD-\d+")])
    (message,) = Storage(redact).events([Message(role="user", text="about ORD-77")])
    assert isinstance(message, Message)
    assert message.text == "about <secret:1>"


def test_results_by_digest_and_no_messages() -> None:
    storage = Storage(policy=RecordPolicy(results="hash", messages="drop"))
    result, message = storage.events(
        [ToolResult(call_id="c", status="ok", result=encode_raw({"a": 1})), Message(role="user", text="hi")]
    )
    assert isinstance(result, ToolResult)
    assert isinstance(message, Message)
    assert (bytes(result.result), result.result_bytes, message.text) == (b"", 7, None)
    assert result.result_hash is not None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([SECRET, f"x {SECRET}", "plain", "<secret:1>"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "password", "token"]), inner),
)


@given(values)
def test_storing_what_is_stored_changes_nothing(value: Any) -> None:
    first = Storage().events([ToolCall(call_id="c", tool_name="t", args=encode_raw(value))])
    assert Storage().events(first) == first
    assert SECRET.encode() not in bytes(first[0].args)  # type: ignore[union-attr]
