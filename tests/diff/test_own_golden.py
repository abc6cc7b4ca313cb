"""A run and the golden made from it: clean, whatever the run, and a run that differs is told so."""

import pytest

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.diff.rerecord import rerecord
from goldentrace.model.change import Comparison
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from tests.traces import Run, args_of, normal

U = [f"0f8fad5b-d9cb-469f-a165-7086772895{n:02d}" for n in range(10)]
PROFILE = Profile(name="test@1")


def compared(golden: Trace, candidate: Trace) -> Comparison:
    """By the golden's file; its verdict is the same by the run."""
    found = compare(read_golden(file_of(golden), "g"), normal(candidate), PROFILE)
    by_run = compare(normal(golden), normal(candidate), PROFILE)
    assert [(c.code, c.message) for c in by_run.changes] == [(c.code, c.message) for c in found.changes]
    return found


def file_of(trace: Trace) -> bytes:
    return encode_golden(as_golden(normal(trace), PROFILE))


def codes(golden: Trace, candidate: Trace) -> list[str]:
    return [change.code for change in compared(golden, candidate).changes]


def is_clean(trace: Trace) -> bool:
    found = compared(trace, trace)
    return not found.changes and not found.not_comparable


def recorded_again(golden: Trace, candidate: Trace) -> tuple[list[str], bytes]:
    """The codes, and the new golden, which is clean against the candidate."""
    found = compared(golden, candidate)
    data = encode_golden(rerecord(found, PROFILE))
    assert compare(read_golden(data, "g"), normal(candidate), PROFILE).changes == []
    return [change.code for change in found.changes], data


def test_a_later_attempt_without_arguments_after_one_with_some() -> None:
    run = Run().call("get", {"n": 1}, status="error", op_id="o")
    assert is_clean(run.call("get", status="ok", op_id="o").end())


def look_up(key: str, second: str = U[2]) -> Trace:
    """A charge times out, is tried again with another key, and is looked up."""
    run = Run().call("charge", {"amount": 5, "key": U[1]}, status="timeout")
    return run.call("charge", {"amount": 5, "key": second}).call("get_charge", {"key": key}).end()


def test_a_look_up_by_the_first_attempts_key_in_place_of_the_seconds() -> None:
    assert args_of(look_up(U[2])) == {"/key": "<charge#1.args@2/key>"}
    assert args_of(look_up(U[1])) == {"/key": "<charge#1.args/key>"}
    assert is_clean(look_up(U[2]))
    assert codes(look_up(U[2]), look_up(U[3], U[3])) == []
    assert codes(look_up(U[2]), look_up(U[1])) == ["GT109"]
    assert codes(look_up(U[1]), look_up(U[2])) == ["GT109"]


def told(order: str, charge: str, text: str) -> Trace:
    run = Run().say(f"Refund order {order}").call("find_charge", {"order": order}, {"charge": charge})
    return run.call("note", {"text": text}).end()


def test_an_id_of_the_prompt_beside_another_id_in_one_text() -> None:
    one = told(U[0], U[1], f"order {U[0]}: charge {U[1]}")
    assert is_clean(one)
    assert codes(one, told(U[0], U[2], f"order {U[0]}: charge {U[2]}")) == []
    assert codes(one, told(U[0], U[1], f"order {U[0]}: charge {U[2]}")) == ["GT109"]


@pytest.mark.parametrize("text", ["{0} {1} {2}", "{1} {0} {2}", "{1} {2}"])
@pytest.mark.parametrize("in_object", [True, False])
def test_ids_that_a_text_of_arguments_was_the_first_to_hold(text: str, in_object: bool) -> None:
    def run(first: str, second: str, used: tuple[str, str]) -> Trace:
        said = text.format(U[0], first, second)
        made = Run().say(f"Order {U[0]}").call("tell", {"text": said} if in_object else said)
        return made.call("use", {"a": used[0], "b": used[1]}).end()

    one = run(U[1], U[2], (U[1], U[2]))
    assert is_clean(one)
    assert codes(one, run(U[3], U[4], (U[3], U[4]))) == []
    assert codes(one, run(U[3], U[4], (U[4], U[3]))) == ["GT109"]


def batch(*verdicts: str) -> Trace:
    run = Run().turn()
    for n, verdict in enumerate(verdicts):
        run.approve(f"c{n}", verdict).call("put", {"a": 1}, id=f"c{n}", batch="b")
    return run.end()


def test_equal_calls_of_a_batch_of_which_one_was_denied_in_another_order() -> None:
    assert codes(batch("approved", "denied"), batch("denied", "approved")) == []
    assert codes(batch("approved", "denied"), batch("denied", "denied")) == ["GT205"]


def test_twins_of_a_batch_that_share_a_new_id_and_end_in_another_order() -> None:
    def run(*statuses: str) -> Trace:
        made = Run().turn()
        for status in statuses:
            made.call("put", {"key": U[1]}, status=status, batch="b")
        return made.end()

    assert codes(run("ok", "error"), run("error", "ok")) == []
    assert codes(run("ok", "error"), run("ok", "ok")) == ["GT301"]


def test_kinds_of_decisions_that_nobody_knows_are_left_out_and_said() -> None:
    run = Run(states=["retry", "unheard of"]).end()
    assert is_clean(run)
    assert b"unheard" not in file_of(run)
    assert normal(run).notes == ("no kind of decision, left out of `states`: 'unheard of'",)


def test_a_decision_of_a_kind_that_its_source_says_not_to_state() -> None:
    run = Run(states=["retry"]).decide("abort").end()
    assert is_clean(run)
    assert normal(run).header.states == ("abort", "retry")


def test_a_call_without_a_turn_stands_in_the_last_one_of_its_agent() -> None:
    run = Run().call("get", {"n": 1}, turn=1, id="p")
    run.call("get", {"n": 2}, parent="p").call("get", {"n": 3})
    trace = run.end()
    assert is_clean(trace)
    assert [operation.turn for operation in normal(trace).operations] == [1, 1, 1]


def test_a_turn_that_an_agent_comes_back_to_is_another() -> None:
    def run(*turns: int) -> Trace:
        made = Run()
        for turn in turns:
            made.call("get", {"turn": turn}, turn=turn)
        return made.end()

    assert is_clean(run(2, 1, 7, 1))
    assert sorted(codes(run(2, 1, 7, 1), run(2, 1, 1))) == ["GT103", "GT107"]


def test_a_call_before_the_first_turn_stands_in_a_turn_of_its_own() -> None:
    late, early = Run().call("get").turn().call("put").end(), Run().turn().call("get").turn().call("put").end()
    assert is_clean(late)
    assert codes(late, early) == []
    assert recorded_again(late, early)[1] == file_of(late) == file_of(early)


def test_turns_of_one_agent_that_split_while_another_agent_works() -> None:
    def run(*turns: int) -> Trace:
        made = Run()
        for n, turn in enumerate(turns):
            made.call("get", {"n": n}, agent="main" if n % 2 else "helper", turn=turn)
        return made.end()

    assert codes(run(1, 1, 1, 1), run(1, 1, 2, 1)) == ["GT107"]
    recorded_again(run(1, 1, 1, 1), run(1, 1, 2, 1))


def test_turns_of_one_agent_that_only_one_side_records() -> None:
    def run(turn: int | None) -> Trace:
        return Run().call("get", turn=1).call("get", agent="helper", turn=turn).call("put", agent="helper").end()

    found = compared(run(None), run(1))
    assert found.coverage == ["turns of helper: the golden has none (remove it and record again to add them)"]
    assert recorded_again(run(None), run(1)) == ([], file_of(run(None)))
    lost = compared(run(1), run(None))
    assert lost.not_comparable == ["turns of helper: the candidate has none (--allow-narrower compares the rest)"]
    assert encode_golden(rerecord(lost, PROFILE)) == file_of(run(None))


def test_decisions_of_one_place_in_another_order() -> None:
    def run(*kinds: str) -> Trace:
        made = Run()
        for kind in kinds:
            made.call("get") if kind == "call" else made.decide(kind)
        return made.end()

    assert codes(run("abort", "fallback", "retry"), run("abort", "retry", "fallback")) == ["GT202"]
    recorded = recorded_again(run("abort", "fallback", "retry"), run("abort", "retry", "call", "fallback"))
    assert recorded[0] == ["GT102", "GT202"]


def test_a_decision_that_the_golden_could_not_state_is_not_written_into_it() -> None:
    one = Run(states=["retry"]).call("get", id="1").end()
    other = Run(states=["retry", "abort"]).call("get", id="1").decide("abort", "1").decide("abort").end()
    assert recorded_again(one, other) == ([], file_of(one))
    more = Run(states=["retry", "abort"]).call("get", {"n": 2}, id="1").decide("abort", "1").decide("abort").end()
    found, data = recorded_again(one, more)
    assert found == ["GT101"]
    assert b"abort" not in data


def test_an_id_that_an_added_call_came_to_hold_first_changes_no_name() -> None:
    args = {"n": 0, "id": U[1]}
    before = Run().call("b", args).call("b", args).end()
    run = Run().call("a", args).call("b", args, batch="x").call("a", args).call("a", args, batch="x").call("b", args)
    found, data = recorded_again(before, run.end())
    assert found == ["GT102", "GT102", "GT109", "GT102"]
    assert b'"/id":"<b#1.args/id>"' in data


def test_calls_that_name_an_id_by_a_call_added_later_pair_as_they_came() -> None:
    def run(*steps: str) -> Trace:
        made = Run()
        for step in steps:
            made.call(step, {} if step == "find" else {"id": U[1]}, {"id": U[1]} if step in ("find", "get") else None)
        return made.end()

    golden = file_of(run("get", "use", "put", "use"))
    for candidate in (run("find", "get", "use", "put", "use"), run("find", "get", "use", "put")):
        found = compare(read_golden(golden, "g"), normal(candidate), PROFILE)
        missing = ["GT103"] if len(normal(candidate).operations) == 4 else []
        assert [c.code for c in found.changes if c.code not in ("GT101", "GT109")] == ["GT102", *missing]
    again = encode_golden(rerecord(compare(read_golden(golden, "g"), normal(candidate), PROFILE), PROFILE))
    assert compare(read_golden(again, "g"), normal(candidate), PROFILE).changes == []


def test_children_of_a_call_that_became_another_are_written_with_its_new_name() -> None:
    one = Run().call("get", id="p").call("use", parent="p").end()
    other = Run().call("put", id="p").call("use", parent="p").end()
    found, data = recorded_again(one, other)
    assert found == ["GT105"]
    assert b'"parent":"put#1"' in data


def test_calls_within_calls_a_thousand_deep() -> None:
    run = Run()
    for n in range(2000):
        run.call("get", {"n": n}, id=f"c{n}", parent=f"c{n - 1}" if n else None)
    trace = run.end()
    assert is_clean(trace)
    assert recorded_again(trace, trace) == ([], file_of(trace))
