"""Every field of every event and of every line of a golden, with every kind of value: read or refused, never crashed on.

In one process, through the readers and the pure layers, so that thousands of cases take seconds.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from goldentrace.codec.golden import encode_golden, is_golden, read_golden
from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.diff.differ import as_golden, compare
from goldentrace.errors import ConfigError, InputError
from goldentrace.model.event import EVENT_TYPES
from goldentrace.model.golden import AnyGoldenLine
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile
from goldentrace.normalize.pipeline import normalize
from tests.conftest import Cli

PROFILE = Profile(name="test@1")
UUID = "3b241101-e2bb-4255-8caf-4136c566a962"
HOSTILE = "\x1b[31m::error::x\u202e"
VALUES: dict[str, Any] = {
    "null": None, "true": True, "7": 7, "-1": -1, "10^30": 10**30, "1.5": 1.5, "text": "x", "empty text": "", "digits": "5",
    "hostile": HOSTILE, "list": [1], "empty list": [], "object": {"a": 1}, "empty object": {}, "lone surrogate": "\ud800",
    "unknown reference": "<zzz#9/id>", "broken reference": "<get#1/~2>", "new": "<new:uuid>", "labels": ["get#9"],
    "leaf of nothing": {"/q": "<q#1/>"}, "kept": {"/id": {"value": [1]}}, "odd pointers": {"": "x", "x": "y", "/~": "{}"},
}  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"type": "trace_start", "format": "goldentrace/1", "scenario_id": "s", "cwd": "/w", "attributes": {}},
    {"type": "model_turn", "turn": 1, "usage": {"input_tokens": 1}, "input_call_ids": ["a"]},
    {"type": "message", "role": "user", "text": "hi"},
    {"type": "approval", "call_id": "a", "verdict": "approved", "by": "me"},
    {"type": "tool_call", "call_id": "a", "tool_name": "get", "args": {"x": 1}, "op_id": "o", "batch": "b"},
    {"type": "tool_result", "call_id": "a", "status": "error", "error_class": "rate_limited", "owed_ms": 1000},
    {"type": "decision", "decision": "retry", "call_id": "a", "by": "harness", "delay_ms": 1000},
    {"type": "tool_call", "call_id": "b", "tool_name": "get", "args": {"x": 1}, "op_id": "o", "attempt": 2},
    {"type": "tool_result", "call_id": "b", "status": "ok", "result": {"id": UUID}},
    {"type": "tool_call", "call_id": "c", "tool_name": "put", "args": {"id": UUID}, "access": "write"},
    {"type": "tool_result", "call_id": "c", "status": "ok", "result": 1},
    {"type": "effect", "name": "e", "key": "k", "value": 1},
    {"type": "limit", "limit": "max_tool_calls", "value": 3, "max": 3},
    {"type": "trace_end", "outcome": "success", "stop_reason": "final_answer"},
]
LINES_OF_GOLDEN = {str(kind.__struct_config__.tag): kind for kind in AnyGoldenLine.__args__}  # type: ignore[attr-defined]


def dump(lines: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def normal(data: bytes) -> NormalTrace:
    return normalize(read_trace(data, "run"), PROFILE, "h:test")


GOOD = dump(EVENTS)
GOLDEN = [json.loads(line) for line in encode_golden(as_golden(normal(GOOD), PROFILE)).splitlines()]


def changed(lines: list[dict[str, Any]], place: int, field: str, value: Any) -> bytes:
    return dump([{**line, field: value} if n == place else line for n, line in enumerate(lines)])


def fields_of(kind: type[msgspec.Struct]) -> list[str]:
    return [*(field.name for field in msgspec.structs.fields(kind)), "type", "a field that nobody knows"]


def check_refusal(error: InputError) -> None:
    assert error.what
    assert error.where is not None
    assert error.where.path in ("run", "golden")
    assert error.next_step


def cases_of_traces() -> Iterator[tuple[int, str]]:
    for place, event in enumerate(EVENTS):
        for field in fields_of(EVENT_TYPES[event["type"]]):
            yield place, field


def cases_of_goldens() -> Iterator[tuple[int, str]]:
    for place, line in enumerate(GOLDEN):
        for field in fields_of(LINES_OF_GOLDEN[line["type"]]):
            yield place, field


def test_every_field_of_every_event_takes_every_value_or_refuses_it() -> None:
    read = refused = 0
    good = normal(GOOD)
    for place, field in cases_of_traces():
        for name, value in VALUES.items():
            data = changed(EVENTS, place, field, value)
            try:
                trace = read_trace(data, "run")
                found = normalize(trace, PROFILE, "h:test")
            except InputError as error:
                check_refusal(error)
                refused += 1
                continue
            read += 1
            compare(good, found, PROFILE)
            compare(found, good, PROFILE)
            encoded = b"".join(map(encode_event, trace.events))
            assert read_trace(encoded, "run").events == trace.events, (place, field, name)
            golden = read_golden(encode_golden(as_golden(found, PROFILE)), "golden")
            assert compare(golden, found, PROFILE).changes == [], (place, field, name)
    assert read > 1000  # the sweep reaches both ends
    assert refused > 1000


def test_every_field_of_every_line_of_a_golden_takes_every_value_or_refuses_it() -> None:
    read = refused = 0
    good = normal(GOOD)
    for place, field in cases_of_goldens():
        for name, value in VALUES.items():
            if name == "lone surrogate":
                continue
            data = changed(GOLDEN, place, field, value)
            try:
                golden = read_golden(data, "golden")
            except InputError as error:
                check_refusal(error)
                refused += 1
                continue
            read += 1
            try:
                compare(golden, good, PROFILE)
            except ConfigError as error:  # a policy of waits in the header that is none
                if field != "backoff" or not error.next_step:
                    raise
            again = encode_golden(golden)
            assert is_golden(again) or field == "kind", (place, field, name)
            assert encode_golden(read_golden(again, "golden")) == again, (place, field, name)
    assert read > 300
    assert refused > 1000


def test_a_golden_with_lines_dropped_doubled_or_swapped_is_read_whole_or_refused() -> None:
    good = normal(GOOD)
    size = len(GOLDEN)
    orders = [[*range(n), *range(n + 1, size)] for n in range(size)]
    orders += [[*range(n + 1), *range(n, size)] for n in range(size)]
    for one in range(size):
        for other in range(one):
            order = list(range(size))
            order[one], order[other] = order[other], order[one]
            orders.append(order)
    for order in orders:
        try:
            golden = read_golden(dump([GOLDEN[n] for n in order]), "golden")
        except InputError as error:
            check_refusal(error)
            continue
        compare(golden, good, PROFILE)


@pytest.mark.parametrize("marker", ["<<<<<<< ours", "=======", ">>>>>>> theirs", "||||||| base"])
def test_a_conflict_marker_is_refused_at_every_line(marker: str) -> None:
    rows = dump(GOLDEN).splitlines(keepends=True)
    for place in range(len(rows) + 1):
        data = b"".join([*rows[:place], marker.encode() + b"\n", *rows[place:]])
        with pytest.raises(InputError, match="conflict marker") as caught:
            read_golden(data, "golden")
        assert caught.value.where is not None
        assert caught.value.where.line == place + 1


def test_a_trace_cut_at_any_byte_is_incomplete_or_refused_and_never_the_whole() -> None:
    whole = read_trace(GOOD, "run")
    for length in range(len(GOOD) - 1):  # without its last LF it is still whole
        try:
            cut = read_trace(GOOD[:length], "run")
        except InputError as error:
            check_refusal(error)
            assert b"\n" not in GOOD[:length]  # from the first whole line on, what is there is read
            continue
        assert cut.incomplete
        assert cut.events == whole.events[: len(cut.events)]
        assert len(cut.events) >= GOOD[:length].count(b"\n")


def test_a_golden_cut_at_any_byte_is_refused() -> None:
    data = dump(GOLDEN)
    for length in range(len(data) - 1):
        with pytest.raises(InputError) as caught:
            read_golden(data[:length], "golden")
        assert caught.value.what
        assert caught.value.next_step


@pytest.mark.parametrize(
    "noise", [b"\xff", b"\0", b"\xed\xa0\x80", b"\r", b"\n", b"\x1b[31m", b"\\ud800", b"\xe2\x80\xae"]
)
def test_a_byte_out_of_place_is_read_or_refused(noise: bytes) -> None:
    golden = dump(GOLDEN)
    for place in range(0, len(GOOD), 3):
        try:
            trace = read_trace(GOOD[:place] + noise + GOOD[place:], "run")
            normalize(trace, PROFILE, "h:test")
        except InputError as error:
            check_refusal(error)
    if noise.startswith(b"\\"):
        return
    for place in range(0, len(golden), 3):
        try:
            read_golden(golden[:place] + noise + golden[place:], "golden")
        except InputError as error:
            check_refusal(error)


@pytest.mark.parametrize("shown", ["text", "concise", "github", "markdown", "junit"])
def test_no_name_of_a_trace_acts_on_what_shows_it(tmp_path: Path, cli: Cli, shown: str) -> None:
    evil = HOSTILE + "\n::error::y <script>alert(1)</script>\r##[error]z"
    call = {
        "type": "tool_call",
        "call_id": "a",
        "tool_name": evil,
        "agent": evil,
        "args": {evil: evil},
        "resource": evil,
    }
    ended = {"type": "tool_result", "call_id": "a", "status": "error"}
    why = {"type": "decision", "decision": "abort", "call_id": "a", "reason": evil}
    around = [{"type": "effect", "name": evil, "key": evil}, {"type": "limit", "limit": evil, "max": 1}]
    end = {"type": "trace_end", "outcome": "failed", "stop_reason": "tool_error"}
    (tmp_path / "evil.jsonl").write_bytes(dump([EVENTS[0], call, ended, why, *around, end]))
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    for sides in (("evil.jsonl", "good.jsonl"), ("good.jsonl", "evil.jsonl")):
        done = cli("diff", *sides, "--output-format", shown)
        assert done.code == 2, done.stderr
        for text in (done.stdout, done.stderr):
            assert not any(char in text for char in "\x1b\r\u202e"), text
            starts = [line.lstrip() for line in text.split("\n")]
            assert not any(line.startswith(("::error::y", "##[")) for line in starts), text
            if shown in ("junit", "markdown"):
                assert "<script>alert" not in text
