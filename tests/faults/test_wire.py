"""Responses on the wire: for each fault exactly the bytes and ends that make it that fault."""

import json

import h11
import pytest

from goldentrace.faults.answer import duplicate_answer, status_answer
from goldentrace.faults.chaos import generator
from goldentrace.faults.kinds import HTTP, KINDS, Phase
from goldentrace.faults.plan import Step
from goldentrace.faults.wire import (
    SETTLE_MS,
    Close,
    Drip,
    Hang,
    Move,
    Reply,
    Reset,
    Send,
    Stale,
    Wait,
    moves,
    plain,
    unanswered,
)

BODY = b'{"charge_id":"ch_1","status":"succeeded"}'
REPLY = Reply(200, (("X-Extra", "1"),), BODY)
NOW_S = 1_800_000_000.25


def step(fault: str, phase: Phase | None = None, **params: object) -> Step:
    return Step(fault, phase or KINDS[fault].phases[0], 1, params)


def made(fault: str, phase: Phase | None = None, **params: object) -> list[Move]:
    return moves(step(fault, phase, **params), REPLY, 70.0, generator(1, "x"))


def sent(found: list[Move]) -> bytes:
    return b"".join(move.data for move in found if isinstance(move, Send | Drip))


def parsed(data: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    """Read a response as h11 does, which accepts no wrong one."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    client.receive_data(b"")
    head = client.next_event()
    assert isinstance(head, h11.Response)
    body = b""
    while isinstance(event := client.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    return head.status_code, dict(head.headers), body


@pytest.mark.parametrize("fault", ["none", "status", "denied", "wrong_id", "truncated_page"])
def test_without_a_wire_fault_the_response_is_right(fault: str) -> None:
    status, headers, body = parsed(sent(made(fault)))
    assert (status, headers[b"x-extra"], body) == (200, b"1", BODY)
    assert made(fault) == plain(REPLY)


def test_a_last_response_says_so_and_closes() -> None:
    last = Reply(200, (), BODY, is_last=True)
    assert b"Connection: close" in last.head()
    assert plain(last)[-1] == Close()


def test_a_hang_sends_what_comes_before_its_phase_and_no_more() -> None:
    whole = REPLY.whole()
    assert made("hang", "after_commit") == [Hang(None), Close()]
    assert unanswered(step("hang", "before_commit", duration_ms=5), generator(1)) == [Hang(5), Close()]
    for phase in ("mid_headers", "mid_body"):
        first, hang, end = made("hang", phase)
        assert isinstance(first, Send)
        assert whole.startswith(first.data)
        assert (b"\r\n\r\n" in first.data) == (phase == "mid_body")
        assert (hang, end) == (Hang(None), Close())


def test_slow_sends_all_of_it_around_its_wait() -> None:
    for phase in ("after_commit", "mid_headers", "mid_body"):
        found = made("slow", phase)
        assert sent(found) == REPLY.whole()
        assert Wait(70.0) in found
    assert made("slow", "before_commit") == plain(REPLY)  # it waited before


def test_drip_sends_all_of_it_slowly() -> None:
    assert made("drip", bytes_per_second=10) == [Send(REPLY.head()), Drip(BODY, 10)]
    assert made("drip", "mid_headers", bytes_per_second=10) == [Drip(REPLY.whole(), 10)]


def test_a_reset_lets_what_was_sent_arrive_first() -> None:
    assert made("reset", "after_commit") == [Reset()]
    assert unanswered(step("reset"), generator(1)) == [Reset()]
    for found in (made("reset", "mid_body"), made("reset_mid_body"), made("reset", "after_response")):
        assert found[-2:] == [Wait(SETTLE_MS), Reset()]
    assert sent(made("reset", "after_response")) == REPLY.whole()
    assert sent(made("reset_mid_body", sent_bytes=3)) == REPLY.head() + BODY[:3]


@pytest.mark.parametrize("fault", ["partial_body", "long_length"])
def test_less_than_the_length_is_an_incomplete_response(fault: str) -> None:
    with pytest.raises(h11.RemoteProtocolError):
        parsed(sent(made(fault)))


def test_a_short_length_leaves_stray_bytes_on_an_open_connection() -> None:
    found = made("short_length", missing_bytes=5)
    assert not any(isinstance(move, Close) for move in found)
    data = sent(found)
    assert f"Content-Length: {len(BODY) - 5}".encode() in data
    assert data.endswith(BODY)


@pytest.mark.parametrize("fault", ["bad_chunk", "garbage"])
def test_what_is_no_http_is_refused(fault: str) -> None:
    with pytest.raises(h11.RemoteProtocolError):
        parsed(sent(made(fault, "after_commit" if fault == "garbage" else None)))


def test_garbage_is_the_same_for_the_same_draw() -> None:
    one, other = (sent(unanswered(step("garbage"), generator(1, n))) for n in (1, 2))
    assert one == sent(unanswered(step("garbage"), generator(1, 1)))
    assert one != other


@pytest.mark.parametrize("body", [b"{}", b'{"a":1}', b"[1,2]", b'"text"', b"12", b"null"])
def test_a_malformed_body_is_no_json_and_has_the_right_length(body: bytes) -> None:
    status, _, got = parsed(sent(moves(step("malformed_json"), Reply(200, (), body), 0, generator(1))))
    assert status == 200
    with pytest.raises(json.JSONDecodeError):
        json.loads(got)


@pytest.mark.parametrize("body", [b"{}", b'{"a":1}', b"[1,2]", b"12"])
def test_bad_utf8_would_be_json_but_for_its_bytes(body: bytes) -> None:
    _, _, got = parsed(sent(moves(step("bad_utf8"), Reply(200, (), body), 0, generator(1))))
    with pytest.raises(UnicodeDecodeError):
        got.decode("utf-8")
    json.loads(got.decode("utf-8", "replace"))


def test_bad_gzip_says_gzip_and_is_none() -> None:
    _, headers, body = parsed(sent(made("bad_gzip")))
    assert headers[b"content-encoding"] == b"gzip"
    assert body == BODY


def test_slow_close_has_no_length_and_ends_late() -> None:
    first, wait, end = made("slow_close", delay_ms=30)
    assert isinstance(first, Send)
    assert b"content-length" not in first.data.lower()
    assert (wait, end) == (Wait(30), Close())


def test_a_stale_connection_answers_first() -> None:
    assert made("stale_keepalive") == [Send(REPLY.whole()), Stale()]


@pytest.mark.parametrize("fault", [name for name, kind in KINDS.items() if HTTP in kind.transports])
def test_every_fault_has_moves_in_each_phase_after_the_commit(fault: str) -> None:
    needed = {"drip": {"bytes_per_second": 9}, "status": {"status": 500}}.get(fault, {})
    for phase in KINDS[fault].phases:
        if phase not in ("before_read", "before_commit"):
            assert made(fault, phase, **needed)


# --- answers that are the fault ---------------------------------------------------------------------------------------


def retry_after(**params: object) -> tuple[dict[str, str], float | None]:
    answer = status_answer(step("status", status=429, **params), None, NOW_S)
    assert answer.error_class == "rate_limited"
    return dict(answer.headers), answer.owed_ms


@pytest.mark.parametrize(
    ("given", "header", "owed_ms"),
    [
        (2, "2", 2000.0),
        (0, "0", 0.0),
        (-5, "-5", None),
        ({"raw": "soon"}, "soon", None),
        ({"raw": "0.7"}, "0.7", None),
        ({"date_in_ms": -60_000}, "Fri, 15 Jan 2027 07:59:01 GMT", 0.0),
    ],
)
def test_retry_after_states_a_wait_or_none(given: object, header: str, owed_ms: float | None) -> None:
    assert retry_after(retry_after=given) == ({"Retry-After": header}, owed_ms)


def test_a_date_is_rounded_up_and_its_exact_wait_is_known() -> None:
    headers, owed_ms = retry_after(retry_after={"date_in_ms": 1500})
    assert headers == {"Retry-After": "Fri, 15 Jan 2027 08:00:02 GMT"}
    assert owed_ms == 1750.0  # 08:00:02.000 is 1.75 s after 08:00:00.250, and 1.5 s were asked for


def test_the_ms_header_wins_as_it_does_in_the_clients_that_know_it() -> None:
    assert retry_after(retry_after=9, retry_after_ms=300) == ({"Retry-After": "9", "retry-after-ms": "300"}, 300.0)


def test_a_repeated_retry_after_states_no_wait() -> None:
    answer = status_answer(step("status", status=429, retry_after=[1, 2]), None, NOW_S)
    assert answer.headers == (("Retry-After", "1"), ("Retry-After", "2"))
    assert answer.owed_ms is None
    assert answer.notes == {"retry_after": "1, 2"}
    assert duplicate_answer(step("duplicate_header"), None).headers == answer.headers


def test_rate_limit_fields_are_structured() -> None:
    headers, _ = retry_after(rate_limit={"remaining": 0, "reset_s": 3, "quota": 50, "window_s": 60})
    assert headers == {"RateLimit": '"default";r=0;t=3', "RateLimit-Policy": '"default";q=50;w=60'}


@pytest.mark.parametrize(
    ("status", "error_class"),
    [(400, "bad_request"), (401, "auth"), (404, "not_found"), (409, "conflict"), (422, "bad_request"), (408, "timeout"),
     (429, "rate_limited"), (500, "server_error"), (503, "server_error"), (204, None)],
)  # fmt: skip
def test_a_status_has_its_class(status: int, error_class: str | None) -> None:
    assert status_answer(step("status", status=status), None, NOW_S).error_class == error_class
