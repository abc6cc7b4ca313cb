"""`goldentrace show`: what the rules found, on the timeline, and where a run stopped."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.traces import call, end, searches, start, write
from tests.conftest import Cli

LIMIT = {"type": "limit", "limit": "max_tool_calls", "value": 3, "max": 2}


def shown(here: Cli, folder: Path, events: list[dict[str, Any]], *options: str) -> list[str]:
    write(folder / "a.jsonl", events)
    done = here("show", "a.jsonl", *options)
    assert (done.code, done.stderr) == (0, "")
    return done.stdout.splitlines()


def stopped(here: Cli, folder: Path, events: list[dict[str, Any]]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads("\n".join(shown(here, folder, events, "--output-format", "json")))[
        "stopped"
    ]
    return found


def test_a_finding_stands_below_the_events_that_it_points_at(tmp_path: Path, here: Cli) -> None:
    first, answer = call(1, q="tea")
    again, same = call(2, q="tea")
    lines = shown(here, tmp_path, [start(), first, answer, {**again, "turn": 1}, {**same, "turn": 1}, end()])
    marked = [number for number, line in enumerate(lines) if "GT1001" in line]
    assert len(marked) == 2
    assert "call" in lines[marked[0] - 1]
    assert "search#1" in lines[marked[0] - 1]
    assert lines[marked[0]].strip() == "^ GT1001 exact-duplicate, 1 of 2: see line 4"
    assert "search#2" in lines[marked[1] - 1]
    assert "^ GT1001 exact-duplicate: search#2 repeats search#1" in lines[marked[1]]


def test_a_finding_about_a_line_that_is_not_shown_stands_at_the_one_before(tmp_path: Path, here: Cli) -> None:
    turns = [{"type": "model_turn", "turn": 2}, {"type": "tool_result", "call_id": "nobody", "status": "ok"}]
    lines = shown(here, tmp_path, [start(), *call(1), *turns, end()])
    place = next(number for number, line in enumerate(lines) if "^ GT1401" in line)
    assert "result" in lines[place - 1]
    assert "search#1" in lines[place - 1]


def test_a_clean_run_has_no_marks_and_did_not_stop(tmp_path: Path, here: Cli) -> None:
    lines = shown(here, tmp_path, searches(3))
    assert [line for line in lines if "GT" in line or "stopped" in line] == []
    assert stopped(here, tmp_path, searches(3)) is None


def test_a_golden_has_neither(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(2))
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    value = json.loads(here("show", "goldens/orders.jsonl", "--output-format", "json").stdout)
    assert (value["findings"], value["stopped"]) == ([], None)


def test_json_lists_the_findings(tmp_path: Path, here: Cli) -> None:
    lines = shown(here, tmp_path, [start(), call(1)[0], end()], "--output-format", "json")
    (found,) = [entry for entry in json.loads("\n".join(lines))["findings"] if entry["rule"] == "GT1402"]
    assert (found["severity"], found["lines"], found["labels"]) == ("error", [2], ["search#1"])


def test_a_limit_that_fired_is_named_with_the_call_before_it(tmp_path: Path, here: Cli) -> None:
    events = [start(), *call(1, q="a"), *call(2, q="b"), LIMIT, end("aborted", "call_limit")]
    assert (
        shown(here, tmp_path, events)[-1]
        == "  stopped: by max_tool_calls (3 reached, 2 allowed), after search#2 (line 4)"
    )


def test_a_limit_that_fired_within_a_call_is_named_with_it(tmp_path: Path, here: Cli) -> None:
    asked, answered = call(2, q="b")
    events = [start(), *call(1, q="a"), asked, LIMIT, answered, end("aborted", "call_limit")]
    found = stopped(here, tmp_path, events)
    assert found is not None
    assert (found["label"], found["line"], found["is_running"]) == ("search#2", 4, True)
    assert (found["limit"], found["value"], found["maximum"]) == ("max_tool_calls", 3, 2)
    assert "while search#2 (line 4) was running" in shown(here, tmp_path, events, "--width", "100")[-1]


def test_a_recording_that_breaks_off_says_in_which_call(tmp_path: Path, here: Cli) -> None:
    lines = shown(here, tmp_path, [start(), *call(1, q="a"), call(2, q="b")[0]])
    assert "  stopped: while search#2 (line 4) was running" in lines
    assert "  stopped: after search#1 (line 2)" in shown(here, tmp_path, [start(), *call(1, q="a")])


def test_a_call_that_an_earlier_turn_left_open_is_not_where_it_stopped(tmp_path: Path, here: Cli) -> None:
    found = stopped(here, tmp_path, [start(), call(1, q="a")[0], *call(2, q="b"), end("failed", "tool_error")])
    assert found is not None
    assert (found["label"], found["line"], found["is_running"]) == ("search#2", 3, False)


@pytest.mark.parametrize(
    ("outcome", "reason", "words"),
    [("failed", "tool_error", "failed, tool_error, after search#1 (line 2)"), ("success", "final_answer", None)],
)
def test_a_run_that_fails_without_a_limit_says_after_which_call(
    tmp_path: Path, here: Cli, outcome: str, reason: str, words: str | None
) -> None:
    last = shown(here, tmp_path, [start(), *call(1), end(outcome, reason)])
    assert [line.partition("stopped: ")[2] for line in last if "stopped: " in line] == ([words] if words else [])


def test_a_run_that_stopped_before_its_first_call_says_so(tmp_path: Path, here: Cli) -> None:
    lines = shown(here, tmp_path, [start(), {**LIMIT, "limit": "max_wall_ms"}, end("aborted", "wall_clock_limit")])
    assert lines[-1].endswith("before the first call")
