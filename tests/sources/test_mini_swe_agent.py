"""mini-SWE-agent: one command per response, and what its template of observations tells."""

from pathlib import Path

from tests.sources.reading import calls, read_one, results, turns

FIXTURES = Path(__file__).with_name("fixtures") / "mini_swe_agent"
FIRST = (FIXTURES / "first_version.json").read_bytes()
CALLS = (FIXTURES / "calls.traj.json").read_bytes()


def test_a_command_stands_in_a_block_and_its_exit_code_in_the_observation() -> None:
    trace = read_one(FIRST)
    assert calls(trace) == [("bash", {"command": each}) for each in ("ls", "cat b", "sleep 99", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")]
    assert [status for _, status, _ in results(trace)] == ["ok", "error", "timeout", "ok"]
    assert [(result.extra or {}).get("exit_code") for result in trace.results()] == [0, 1, None, None]


def test_a_response_with_several_commands_ran_none_of_them() -> None:
    trace = read_one(FIRST)
    assert len(turns(trace)) == 5
    assert [note.text for note in trace.notes] == ["a response with several commands ran none of them"]


def test_an_example_in_the_instructions_is_no_command() -> None:
    assert ("bash", {"command": "<command>"}) not in calls(read_one(FIRST))


def test_later_versions_call_a_function_and_keep_times_and_usage() -> None:
    trace = read_one(CALLS)
    assert calls(trace) == [("bash", {"command": "ls"})]
    assert (trace.calls()[0].ts, trace.results()[0].ts) == ("2026-01-01T10:00:00.500000Z", "2026-01-01T10:00:02.000000Z")
    usage = turns(trace)[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (7, 2)
    assert trace.end is not None
    assert trace.end.stop_reason == "final_answer"
