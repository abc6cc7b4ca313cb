"""MCP transcripts: ids of two directions and of many sessions, answers out of order, two kinds of errors, and HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.reading import calls, read_one, results

FIXTURES = Path(__file__).with_name("fixtures") / "mcp"
STDIO = tuple(json.loads(line) for line in (FIXTURES / "stdio.jsonl").read_text().splitlines())


def rpc(**fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **fields}


def call(message_id: Any, name: str = "find", **arguments: Any) -> dict[str, Any]:
    return rpc(id=message_id, method="tools/call", params={"name": name, "arguments": arguments})


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def test_answers_out_of_order_find_their_calls() -> None:
    trace = read_one(STDIO)
    assert [call.call_id for call in trace.calls()] == ["2", "3", "4", "5", "6", "7"]
    assert [result.call_id for result in trace.results()] == ["3", "2", "4", "5", "6", "7"]


def test_a_tool_that_failed_is_told_from_an_error_of_the_protocol() -> None:
    found = {each.call_id: (each.status, each.error_class) for each in read_one(STDIO).results()}
    assert found["4"] == ("error", "tool_error")
    assert found["5"] == ("error", "bad_request")
    assert found["3"] == ("ok", None)


@pytest.mark.parametrize("keep_direction", [True, False])
def test_ids_exist_once_per_direction(keep_direction: bool) -> None:
    trace = read_one(STDIO if keep_direction else tuple(row["msg"] for row in STDIO))
    assert results(trace)[1] == ("2", "ok", {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"found": 1}})


def test_a_call_that_was_cancelled_waits_for_no_answer() -> None:
    late = {"ts": 1767262000, "dir": "server->client", "msg": rpc(id=6, result=text("late"))}
    trace = read_one((*STDIO, late))
    assert [(call_id, status) for call_id, status, _ in results(trace)][-2:] == [("6", "cancelled"), ("7", "unfinished")]
    assert [note.text for note in trace.notes] == ["a response to a call that was cancelled was left out"]


def test_notifications_pings_and_requests_of_the_server_are_counted_and_no_calls() -> None:
    trace = read_one(STDIO)
    assert trace.end is not None
    assert trace.end.extra == {"other_messages": {
        "initialize": 1, "notifications/cancelled": 1, "notifications/initialized": 1, "notifications/message": 1,
        "notifications/progress": 1, "ping": 1, "sampling/createMessage": 1, "tools/list": 1,
    }}  # fmt: skip


def test_a_server_says_whether_its_tools_only_read() -> None:
    assert [each.access for each in read_one(STDIO).calls()] == ["read", "write", None, "read", None, None]


def test_ids_begin_again_with_each_session() -> None:
    session = (rpc(id=0, method="initialize"), rpc(id=0, result={}), call(1, q="a"), rpc(id=1, result=text("A")))
    trace = read_one((*session, *session))
    assert [each.call_id for each in trace.calls()] == ["1", "2/1"]
    open_before = read_one((rpc(id=0, method="initialize"), call(1, q="a"), rpc(id=0, method="initialize"), call(1, q="b"), rpc(id=1, result=text("B"))))
    assert [(call_id, status) for call_id, status, _ in results(open_before)] == [("2/1", "ok"), ("1", "unfinished")]


def test_order_of_keys_and_kind_of_ids_do_not_matter() -> None:
    trace = read_one(({"params": {"arguments": {}, "name": "t"}, "id": "x-1", "method": "tools/call", "jsonrpc": "2.0"}, {"result": text("ok"), "id": "x-1", "jsonrpc": "2.0"}))
    assert results(trace) == [("x-1", "ok", "ok")]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda message: {"timestamp": "2026-01-01T10:00:00Z", "direction": "sent", "message": message},
        lambda message: {"time": 1767261600000, "data": json.dumps(message)},
        lambda message: {"ts": 1767261600, "payload": [message]},
    ],
    ids=["names", "text", "batch"],
)
def test_every_envelope_is_opened(wrap: Any) -> None:
    trace = read_one((wrap(call(1)), wrap(call(2)) | ({"direction": "sent"} if "direction" in wrap(call(1)) else {})))
    assert [each.ts for each in trace.calls()] == ["2026-01-01T10:00:00.000000Z"] * 2


def test_a_list_of_messages_is_a_transcript_too() -> None:
    assert calls(read_one([call(1, q=1), rpc(id=1, result=text("x"))])) == [("find", {"q": 1})]


def test_without_a_clock_the_reason_stands() -> None:
    bare = read_one(tuple(row["msg"] for row in STDIO))
    assert bare.coverage["times"] == "the messages carry no clock"
    assert "times" not in read_one(STDIO).coverage
    assert read_one(STDIO).calls()[0].ts == "2026-01-01T10:00:01.500000Z"


def test_replies_over_http_are_server_sent_events_and_refusals_have_a_status() -> None:
    trace = read_one((FIXTURES / "cassette.yaml").read_bytes())
    assert [(call_id, status, value) for call_id, status, value in results(trace)] == [("1", "ok", "one"), ("2/1", "ok", "two"), ("2", "error", None)]
    assert (trace.results()[2].http_status, trace.results()[2].error_class) == (429, "rate_limited")


def test_a_har_tells_when_calls_began_and_ended() -> None:
    trace = read_one((FIXTURES / "session.har").read_bytes())
    assert trace.format == "mcp"
    assert (trace.calls()[0].ts, trace.results()[0].ts) == ("2026-01-01T10:00:01.000000Z", "2026-01-01T10:00:01.250000Z")
