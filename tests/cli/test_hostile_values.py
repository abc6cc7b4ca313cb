"""Values that no agent would send: too deep, too large, no text. Each command reads them or refuses them in the one way."""

import json
from pathlib import Path
from typing import Any

import pytest

from goldentrace.codec.canonical import MAX_DEPTH
from goldentrace.report.formats import FORMATS
from tests.cli.test_bad_input import check_message
from tests.cli.traces import call, dump, end, files_in, searches, start, write
from tests.conftest import Cli

COMMANDS = [
    ["show"],
    ["lint"],
    ["stats"],
    ["normalize"],
    ["normalize", "--explain"],
    ["cache", "simulate"],
    ["import", "-o", "out.jsonl"],
    ["record", "new", "--from"],
    ["script", "from-trace"],
    *(["diff", "--output-format", name, "good.jsonl"] for name in FORMATS),
]


def nested(levels: int, inner: Any = 1) -> Any:
    for number in range(levels):
        inner = [inner] if number % 2 else {"a": inner}
    return inner


def in_strings(levels: int, times: int) -> Any:
    """A value whose JSON strings hold JSON, and so on."""
    value = nested(levels)
    for _ in range(times):
        value = nested(levels, json.dumps(value, separators=(",", ":")))
    return value


def with_value(value: Any) -> list[dict[str, Any]]:
    """A run whose second call sends the value and gets it back."""
    sent = {"type": "tool_call", "turn": 2, "call_id": "c", "tool_name": "t", "args": {"value": value}}
    got = {"type": "tool_result", "turn": 2, "call_id": "c", "status": "ok", "result": value}
    return [start(), *call(1, q="a"), sent, got, end()]


def chain(length: int) -> list[dict[str, Any]]:
    """Calls each of which ran within the one before."""
    sent = [
        {"type": "tool_call", "turn": 1, "call_id": f"c{n}", "tool_name": "t", "args": {"n": n}} for n in range(length)
    ]
    within = [event | ({"parent": f"c{n - 1}"} if n else {}) for n, event in enumerate(sent)]
    got = [{"type": "tool_result", "call_id": f"c{n}", "status": "ok", "result": n} for n in range(length)]
    return [start(), *within, *got, end()]


READABLE = {
    "a value as deep as it may be": with_value(nested(MAX_DEPTH - 2)),
    "deep JSON in strings in strings": with_value(in_strings(240, 8)),
    "a lone surrogate in a key and a text": with_value({"\ud800": "\udfff"}),
    "a chain of 1,200 calls within calls": chain(1200),
}
REFUSED = {
    "a value one level too deep": (with_value(nested(MAX_DEPTH - 1)), "nested deeper than", "bad.jsonl:4 $.args"),
    "a value 900 levels deep": (with_value(nested(900)), "nested deeper than", "bad.jsonl:4 $.args"),
    "a clock beyond 64 bits": (
        [{**event, "mono_ns": 10 ** (400 if n == 3 else 9)} for n, event in enumerate(searches(3))],
        "9223372036854775807", "bad.jsonl:4 $.mono_ns",
    ),
    "a clock before 64 bits": (
        [{**event, "mono_ns": -(10 ** (400 if n == 3 else 9))} for n, event in enumerate(searches(3))],
        "-9223372036854775808", "bad.jsonl:4 $.mono_ns",
    ),
    "a wait that is no finite number": (
        [start(), *call(1, q="a"), {"type": "decision", "decision": "retry", "call_id": "call-1", "delay_ms": 10**400}, end()],
        "number out of range", "bad.jsonl:4 $.delay_ms",
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("case", READABLE)
def test_what_is_strange_but_whole_is_read(tmp_path: Path, here: Cli, case: str, command: list[str]) -> None:
    write(tmp_path / "odd.jsonl", READABLE[case])
    write(tmp_path / "good.jsonl", searches(2))
    done = here(*command, "odd.jsonl")
    assert "internal error" not in done.stderr
    if command[0] == "script" and done.code == 3:  # a script is YAML, with bounds of its own
        check_message(done.stderr, "the run makes no script", "odd.jsonl")
    else:
        assert done.code in ((2,) if "diff" in command else (0, 2)), done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_beyond_the_bounds_is_refused(tmp_path: Path, here: Cli, case: str, command: list[str]) -> None:
    events, what, where = REFUSED[case]
    write(tmp_path / "bad.jsonl", events)
    write(tmp_path / "good.jsonl", searches(2))
    before = files_in(tmp_path)
    done = here(*command, "bad.jsonl")
    assert done.code == 3
    check_message(done.stderr, what, where)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    "number",
    ["1e300", "-1e300", "1.7e308", "1" + "0" * 400, "-1" + "0" * 400],
    ids=["1e300", "-1e300", "1.7e308", "10^400", "-10^400"],
)
@pytest.mark.parametrize(
    "field", ["owed_ms", "delay_ms", "value", "max", "cost_usd", "http_status", "turn", "result_bytes"]
)
def test_every_number_is_added_up_and_shown_or_refused(tmp_path: Path, here: Cli, field: str, number: str) -> None:
    usage = {"type": "model_turn", "usage": {"input_tokens": 5, "cost_usd": 0.5}}
    limit = {"type": "limit", "limit": "max_tool_calls", "value": 5, "max": 5}
    failed = {
        "type": "tool_result",
        "call_id": "c",
        "status": "error",
        "owed_ms": 5,
        "result_bytes": 5,
        "http_status": 5,
        "turn": 5,
    }
    again = {"type": "decision", "decision": "retry", "call_id": "c", "delay_ms": 5}
    sent = {"type": "tool_call", "call_id": "c", "tool_name": "t", "args": {}}
    lines = [start(), usage, usage, sent, failed, again, sent, failed, limit, end()]
    text = "".join(json.dumps(line).replace(f'"{field}": {value}', f'"{field}": {number}') + "\n"
                   for line in lines for value in ["0.5" if field == "cost_usd" else "5"])  # fmt: skip
    assert number in text
    (tmp_path / "odd.jsonl").write_text(text)
    write(tmp_path / "good.jsonl", searches(2))
    for command in COMMANDS:
        done = here(*command, "odd.jsonl")
        assert "internal error" not in done.stderr, command
        assert done.code in (0, 2, 3)


@pytest.mark.parametrize("field", ["outcome", "stop_reason"])
def test_a_golden_with_a_lone_surrogate_for_a_word_of_a_list(tmp_path: Path, here: Cli, field: str) -> None:
    write(tmp_path / "good.jsonl", searches(2))
    assert here("record", "new", "--from", "good.jsonl").code == 0
    golden = tmp_path / "goldens" / "new.jsonl"
    lines = [json.loads(line) for line in golden.read_text().splitlines()]
    golden.write_text(dump([*lines[:-1], {**lines[-1], field: "\ud800"}]))
    done = here("diff", golden, "good.jsonl")
    assert done.code == 3
    check_message(done.stderr, "invalid enum value", f"{golden}:{len(lines)} $.{field}")


def test_a_golden_with_a_lone_surrogate_in_a_key(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "good.jsonl", searches(2))
    assert here("record", "new", "--from", "good.jsonl").code == 0
    golden = tmp_path / "goldens" / "new.jsonl"
    lines = [json.loads(line) for line in golden.read_text().splitlines()]
    golden.write_text(dump([*lines[:-1], {**lines[-1], "\ud800": 1}]))
    done = here("diff", golden, "good.jsonl")
    assert done.code == 3
    check_message(done.stderr, "unknown field", f"{golden}:{len(lines)}")


def test_a_note_names_the_places_where_lone_surrogates_were_replaced(tmp_path: Path, here: Cli) -> None:
    message = {"type": "message", "role": "user", "text": "\ud800", "extra": {"a": ["\udfff", "\ud800"], "\ud800": 1}}
    write(tmp_path / "odd.jsonl", [start(), message, *with_value("\ud800")[1:]])
    shown = " ".join(here("lint", "-v", "odd.jsonl").stdout.split())
    assert "lone surrogates were replaced at $.text, $.extra.a[0], $.extra.a[1] and 1 more (line 2)" in shown
    assert "(line 5)" not in shown  # arguments keep theirs
