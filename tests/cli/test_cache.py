"""`goldentrace cache simulate`."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.traces import call, end, searches, start, write
from tests.conftest import Cli


def loop(count: int, every_s: int, **usage: Any) -> list[dict[str, Any]]:
    """So many equal calls in a row, each a second long, every one in a turn of its own."""
    events = [start(ts="2026-03-01T09:00:00Z")]
    for number in range(1, count + 1):
        second = number * every_s
        ts = [f"2026-03-01T{9 + at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}Z" for at in (second, second + 1)]
        asked, answered = call(number, q="tea")
        told = {"usage": usage} if usage else {}
        events += [{"type": "model_turn", "turn": number, "ts": ts[0], **told}, {**asked, "ts": ts[0]}]
        events.append({**answered, "result": {"found": 3}, "ts": ts[1]})
    return [*events, end()]


def test_43_calls_in_a_row_are_one_with_a_ttl_of_600_s(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", loop(43, 10, input_tokens=1000, cached_tokens=900, output_tokens=20, cost_usd=0.002))
    done = here("cache", "simulate", "a.jsonl", "--ttl-s", "600")
    assert (done.code, done.stderr) == (0, "")
    words = [line.split() for line in done.stdout.splitlines()]
    assert ["tool", "calls", "43", "1", "42"] in words
    assert ["tool", "seconds", "43.000", "1.000", "42.000"] in words
    assert ["input", "tokens", "43,000", "1,000", "to", "43,000", "0", "to", "42,000"] in words
    assert ["cost,", "USD", "0.0860", "0.0020", "to", "0.0860", "0", "to", "0.0840"] in words
    assert "4,200 tokens without, 42,000 with" in done.stdout
    assert "42 of 42 hits checked, none wrong" in done.stdout
    value = json.loads(here("cache", "simulate", "a.jsonl", "--ttl-s", "600", "--output-format", "json").stdout)
    assert (value["calls"], value["tool_ms"]) == ({"before": 43, "after": 1}, {"before": 43_000, "after": 1_000})
    assert value["tokens"]["input"] == {"before": 43_000, "after_low": 1_000, "after_high": 43_000}
    assert value["turns"]["repeats"]["uncached_input_tokens"] == 4_200


def test_a_shorter_ttl_saves_less(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", loop(43, 10))
    # kept at 11 s: hits at 20 to 110, expired at 120; so one call in eleven is made
    done = here("cache", "simulate", "a.jsonl", "--ttl-s", "100", "--output-format", "json")
    assert json.loads(done.stdout)["calls"] == {"before": 43, "after": 4}


def test_hits_that_would_have_been_wrong_are_listed(tmp_path: Path, here: Cli) -> None:
    events = [start(), *call(1, q="tea"), *call(2, q="tea"), end()]  # their results differ
    write(tmp_path / "a.jsonl", events)
    done = here("cache", "simulate", "a.jsonl")
    assert done.code == 0
    assert "1 hit would have been wrong" in done.stdout
    assert "line 4 search#2: the result of search#1 (line 2)" in done.stdout
    (wrong,) = json.loads(here("cache", "simulate", "a.jsonl", "--output-format", "json").stdout)["hits"]["wrong"]
    assert (wrong["label"], wrong["first_label"], wrong["is_right"]) == ("search#2", "search#1", False)


def test_nothing_is_invented_without_usage(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", loop(3, 10))
    done = here("cache", "simulate", "a.jsonl")
    assert "the trace records no usage" in done.stdout
    value = json.loads(here("cache", "simulate", "a.jsonl", "--output-format", "json").stdout)
    assert (value["tokens"], value["cost_usd"]) == ({"input": None, "output": None}, None)


def test_an_incomplete_recording_is_simulated_and_said_to_be_one(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", loop(3, 10)[:-1])
    done = here("cache", "simulate", "a.jsonl")
    assert done.code == 0
    assert "incomplete: there is no trace_end" in done.stdout
    value = json.loads(here("cache", "simulate", "a.jsonl", "--output-format", "json").stdout)
    assert (value["calls"]["after"], "no trace_end" in value["incomplete"]) == (1, True)


def test_a_foreign_trace_can_be_simulated(tmp_path: Path, here: Cli) -> None:
    asked = {"type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
    chat: list[dict[str, Any]] = [{"role": "user", "content": "weather?"}]
    for number in range(3):
        chat += [
            {"role": "assistant", "tool_calls": [{"id": f"c{number}", **asked}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "sun"},
        ]
    (tmp_path / "a.json").write_text(json.dumps(chat))
    value = json.loads(here("cache", "simulate", "a.json", "--output-format", "json").stdout)
    assert (value["calls"], value["tool_ms"]["before"]) == ({"before": 3, "after": 1}, None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.jsonl", "--ttl-s", "5"], "records no times"),
        (["a.jsonl", "--ttl-s", "0"], "--ttl-s"),
        (["a.jsonl", "--tool", "serach"], "it calls search"),
        (["none.jsonl"], "no such file"),
    ],
)
def test_what_cannot_be_simulated_is_refused(tmp_path: Path, here: Cli, arguments: list[str], said: str) -> None:
    write(tmp_path / "a.jsonl", searches(2))
    done = here("cache", "simulate", *arguments)
    assert (done.code, done.stdout) == (3, "")
    assert said in done.stderr


def test_the_text_keeps_to_its_width(tmp_path: Path, here: Cli) -> None:
    events = [start(), *(event for n in range(1, 5) for event in call(n, "a_tool_of_a_long_name" * 6, q="tea")), end()]
    write(tmp_path / "a.jsonl", events)
    for width in (40, 80):
        done = here("cache", "simulate", "a.jsonl", "--width", str(width))
        assert done.code == 0
        assert max(map(len, done.stdout.splitlines())) <= width
