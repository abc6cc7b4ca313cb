"""Where in a call a fault strikes: what has taken effect by then, what the client has seen, what is written down."""

import time
from collections.abc import Callable

import pytest

from goldentrace.codec.canonical import decode
from goldentrace.faults import FaultsHandle
from goldentrace.model.event import Effect, ToolCall, ToolResult
from goldentrace.normalize.operations import group
from tests.faults.serving import Client, connect, kinds, read_all
from tests.traces import AlikeByBytes

Serve = Callable[..., FaultsHandle]
Open = Callable[..., Client]
PLAN = """
plan: p
tools:
  a: {access: write, effect_record: {e: "{/x}"}, result: {text: "0123456789"}, steps: [%s], after_steps: ok}
limits: {max_hang_ms: 150}
"""
CALL = b'POST /tools/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 7\r\n\r\n{"x":1}'
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n" + b'{"text":"0123456789"}'
NOTHING, HEAD, BODY = b"", WHOLE[: WHOLE.index(b"\r\n\r\n") // 2], WHOLE[: WHOLE.index(b"{") + 5]


@pytest.mark.parametrize("fault", ["hang", "reset"])
@pytest.mark.parametrize(
    ("phase", "effects", "seen"),
    [
        ("before_read", 0, NOTHING),
        ("before_commit", 0, NOTHING),
        ("after_commit", 1, NOTHING),
        ("mid_headers", 1, HEAD),
        ("mid_body", 1, BODY),
    ],
)
def test_a_fault_takes_what_comes_after_its_phase(
    serve: Serve, fault: str, phase: str, effects: int, seen: bytes
) -> None:
    server = serve(PLAN % f"{{fault: {fault}, phase: {phase}}}")
    with connect(server) as sock:
        sock.sendall(CALL)
        data = read_all(sock)
    assert WHOLE.startswith(data.removesuffix(b"<reset>"))
    assert data.startswith(seen)
    assert (len(data.removesuffix(b"<reset>")) > 0) == (seen != NOTHING)
    assert data.endswith(b"<reset>") == (fault == "reset")
    assert len(server.effects()) == effects
    expected = ["tool_call", *["effect"] * effects, f"tool_result:{'timeout' if fault == 'hang' else 'error'}"]
    assert kinds(server.events()) == expected
    (call,) = server.calls()
    assert (call["is_committed"], call["error_class"]) == (bool(effects), "timeout" if fault == "hang" else "reset")
    assert (call["http_status"] is None) == (phase != "mid_body")


@pytest.mark.parametrize("phase", ["before_read", "before_commit", "after_commit", "mid_headers", "mid_body"])
def test_slow_is_whole_in_the_end_wherever_it_waits(serve: Serve, client: Open, phase: str) -> None:
    server = serve(PLAN % f"{{fault: slow, phase: {phase}, delay_ms: 120}}")
    begun = time.monotonic()
    answer = client(server).call("a", {"x": 1})
    assert time.monotonic() - begun >= 0.12
    assert (answer.status, answer.value) == (200, {"text": "0123456789"})
    assert [effect["value"] for effect in server.effects()] == [1]
    assert client(server).call("a", {"x": 2}).status == 200


@pytest.mark.parametrize(("phase", "effects"), [("before_read", 0), ("before_commit", 0), ("after_commit", 1)])
def test_a_status_may_come_before_or_after_the_effect(serve: Serve, client: Open, phase: str, effects: int) -> None:
    server = serve(PLAN % f"{{fault: status, status: 503, phase: {phase}, delay_ms: 60}}")
    begun = time.monotonic()
    answer = client(server).call("a", {"x": 1})
    assert time.monotonic() - begun >= 0.06
    assert (answer.status, answer.value["error"]["type"]) == (503, "server_error")
    assert len(server.effects()) == effects


@pytest.mark.parametrize("fault", ["empty_reply", "garbage"])
@pytest.mark.parametrize(("phase", "effects"), [("before_commit", 0), ("after_commit", 1)])
def test_a_lost_answer_may_have_had_its_effect(serve: Serve, fault: str, phase: str, effects: int) -> None:
    server = serve(PLAN % f"{{fault: {fault}, phase: {phase}}}")
    with connect(server) as sock:
        sock.sendall(CALL)
        assert b"HTTP" not in read_all(sock)
    assert len(server.effects()) == effects


def test_a_call_that_was_not_read_is_written_down_as_far_as_it_arrived(serve: Serve) -> None:
    server = serve(PLAN % "{fault: reset, phase: before_read, times: 2}")
    with connect(server) as sock:
        sock.sendall(CALL)
        assert read_all(sock) == b"<reset>"
    with connect(server) as sock:
        sock.sendall(CALL[:-3])
        assert read_all(sock) == b"<reset>"
    first, second = (event for event in server.events() if isinstance(event, ToolCall))
    assert decode(first.args) == {"x": 1}
    assert bytes(second.args) == b""


def test_an_answer_before_reading_arrives_although_megabytes_are_on_their_way(serve: Serve, client: Open) -> None:
    server = serve(PLAN % "{fault: status, status: 429, retry_after: 3, phase: before_read}")
    answer = client(server).request("POST", "/tools/a", b'{"x": "' + b"y" * 5_000_000 + b'"}')
    assert (answer.status, answer.headers["retry-after"], answer.headers["connection"]) == (429, "3", "close")


def test_what_was_not_read_and_its_repetition_are_one_operation(serve: Serve, client: Open) -> None:
    server = serve(PLAN.replace("access: write", "access: write, idempotency: {header: Idempotency-Key}")
                   % "{fault: reset, phase: before_read}")  # fmt: skip
    for _ in range(2):
        try:
            client(server).call("a", {"x": 1}, Idempotency_Key="k")
        except ConnectionError:
            continue
    events = server.events()
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [(call.op_id, call.attempt) for call in calls] == [(None, 1), ("call_1", 2)]
    assert [event.status for event in events if isinstance(event, ToolResult)] == ["error", "ok"]
    assert [event.key for event in events if isinstance(event, Effect)] == ["k"]


def test_without_a_key_the_reader_of_the_trace_joins_equal_calls(serve: Serve, client: Open) -> None:
    from goldentrace.model.event import FORMAT, TraceStart
    from goldentrace.model.trace import Trace

    server = serve(PLAN % "{fault: status, status: 503, times: 2}")
    for _ in range(3):
        client(server).call("a", {"x": 1})
    trace = Trace([TraceStart(format=FORMAT), *server.events()], "t")
    operations = group(trace, AlikeByBytes()).groups
    assert [len(operation.tries()) for operation in operations] == [3]
