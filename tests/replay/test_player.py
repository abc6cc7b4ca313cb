"""Which turn is due, and what becomes of it."""

import pytest

from goldentrace.replay.conversation import Call, Message, ModelRequest, Result
from goldentrace.replay.player import ScriptFailure, ScriptPlayer, Served
from goldentrace.replay.script_file import parse_script


class Conversation:
    """An agent that answers each call with a result that the test gives."""

    def __init__(
        self, text: str, *, seed: int = 7, model: str = "m", system: str = "", tools: tuple[str, ...] = ()
    ) -> None:
        self.player = ScriptPlayer(parse_script(text), seed=seed)
        self.messages = [*([Message("system", system)] if system else []), Message("user", "go")]
        self.model, self.tools = model, tools

    def ask(self, *results: Result) -> Served:
        if results:
            self.messages.append(Message("tool", results=results))
        request = ModelRequest(self.model, tuple(self.messages), self.tools)
        intake = self.player.take_in(request)
        served = self.player.play(request, intake, call_prefix="call_", reply_prefix="r_")
        self.intake = intake
        if served.turn.error is None:
            self.messages.append(Message("assistant", served.reply.text, served.reply.calls))
        return served

    def answer(self, text: str, *, is_error: bool | None = None) -> Served:
        """Answer every call of the last reply with the same text."""
        last = next(message for message in reversed(self.messages) if message.role == "assistant")
        return self.ask(*(Result(call.call_id or "own-id", text, is_error) for call in last.calls))


BRANCHES = """
error_texts: ["Error:"]
turns:
  - calls: [{tool: charge, args: {n: 1}}]
  - when: {status: error}
    calls: [{tool: charge, args: {n: 1}}]
    repeat: 2
  - when: {status: ok}
    text: done
  - text: gave up
"""


def test_turns_come_in_order_and_the_end_is_an_error() -> None:
    talk = Conversation("turns: [{calls: [{tool: a}]}, {text: b}]")
    assert talk.ask().reply.calls[0].tool_name == "a"
    assert talk.answer("x").reply.text == "b"
    with pytest.raises(ScriptFailure, match="no turn left for request 3") as caught:
        talk.ask()
    assert caught.value.kind == "script_exhausted"
    assert talk.player.failure is not None
    with pytest.raises(ScriptFailure):
        talk.ask()


def test_a_turn_whose_condition_does_not_hold_is_passed_over() -> None:
    talk = Conversation(BRANCHES)
    talk.ask()
    assert talk.answer("ok").reply.text == "done"


def test_a_conditional_turn_repeats_while_its_condition_holds() -> None:
    talk = Conversation(BRANCHES)
    talk.ask()
    assert talk.answer("Error: busy").reply.calls
    assert talk.answer("Error: busy").reply.calls
    assert talk.answer("Error: busy").reply.text == "gave up", "repeated as often as it says"
    talk = Conversation(BRANCHES)
    talk.ask()
    assert talk.answer("Error: busy").reply.calls
    assert talk.answer("fine").reply.text == "done", "no longer than its condition holds"


def test_a_turn_repeats_for_ever() -> None:
    talk = Conversation("turns: [{calls: [{tool: a}], repeat: forever}]")
    served = [talk.ask()] + [talk.answer("same") for _ in range(20)]
    assert {turn.reply.calls[0].tool_name for turn in served} == {"a"}
    assert len({turn.reply.calls[0].call_id for turn in served}) == 21


@pytest.mark.parametrize(
    ("condition", "result", "holds"),
    [
        ("{status: ok}", Result("c", "x"), True),
        ("{status: ok}", Result("c", "x", is_error=True), False),
        ("{status: error}", Result("c", "x", is_error=True), True),
        ("{status: error}", Result("c", '{"isError": true}'), True),
        ("{status: error}", Result("c", '{"is_error": true}', is_error=False), False),
        ("{status: error}", Result("c", "Error: x"), False),
        ("{tool: a}", Result("c", "x"), True),
        ("{tool: b}", Result("c", "x"), False),
        ("{contains: needle}", Result("c", "hay needle hay"), True),
        ("{contains: needle}", Result("c", "hay"), False),
        ("{tool: a, contains: needle, status: ok}", Result("c", "needle"), True),
        ("{tool: a, contains: needle, status: error}", Result("c", "needle"), False),
        ("{status: missing}", None, True),
        ("{status: missing, tool: b}", None, False),
        ("{status: missing}", Result("c", "x"), False),
        ("{user_contains: go}", Result("c", "x"), True),
        ("{user_contains: stop}", Result("c", "x"), False),
        ("[{status: ok}, {user_contains: stop}]", Result("c", "x"), False),
        ("[{status: ok}, {user_contains: go}]", Result("c", "x"), True),
    ],
)
def test_conditions(condition: str, result: Result | None, holds: bool) -> None:
    talk = Conversation(
        f"turns: [{{calls: [{{tool: a, id: c}}]}}, {{text: branch, when: {condition}}}, {{text: other}}]"
    )
    talk.ask()
    served = talk.ask(*([result] if result else []))
    assert served.reply.text == ("branch" if holds else "other")


def test_conditions_look_at_one_result_at_a_time() -> None:
    text = "turns: [{calls: [{tool: a, id: c1}, {tool: b, id: c2}]}, {text: branch, when: {tool: a, status: error}}, {text: other}]"
    talk = Conversation(text)
    talk.ask()
    assert talk.ask(Result("c1", "x"), Result("c2", "x", is_error=True)).reply.text == "other"


def test_no_turn_that_applies_is_another_error_than_the_end() -> None:
    talk = Conversation("turns: [{calls: [{tool: a}]}, {text: b, when: {status: error}}]")
    talk.ask()
    with pytest.raises(ScriptFailure, match=r"no `when` holds \(<memory>:1\)") as caught:
        talk.answer("ok")
    assert caught.value.kind == "no_turn_applies"


def test_unused_turns_are_those_taken_for_certain() -> None:
    talk = Conversation(
        "turns: [{calls: [{tool: a}], repeat: 3}, {text: b, when: {status: error}}, {text: c}, {calls: [{tool: d}], repeat: forever}]"
    )
    assert [use.index for use in talk.player.uses() if use.is_unused] == [0, 2, 3]
    talk.ask()
    talk.answer("x")
    assert [use.index for use in talk.player.uses() if use.is_unused] == [0, 2, 3], "twice is not three times"
    talk.answer("x")
    talk.answer("x")
    assert [use.index for use in talk.player.uses() if use.is_unused] == [3]
    talk.ask()
    assert [use.index for use in talk.player.uses() if use.is_unused] == []


def test_a_reference_is_a_value_of_the_result_of_the_nth_call_of_a_tool() -> None:
    talk = Conversation(
        """
turns:
  - calls: [{tool: find, args: {}}, {tool: find, args: {q: 2}}]
  - calls: [{tool: charge, args: {order: "<find#2/id>", n: "<find#1/n>"}}]
  - text: "charged <find#2/id>"
"""
    )
    first = talk.ask()
    one, two = (call.call_id or "" for call in first.reply.calls)
    charge = talk.ask(Result(two, '{"id":"second"}'), Result(one, '{"id":"first","n":5}')).reply.calls[0]
    assert charge.args == {"order": "second", "n": 5}
    assert talk.answer("ok").reply.text == "charged second"


def test_a_reference_outlives_a_history_that_was_cut() -> None:
    talk = Conversation('turns: [{calls: [{tool: find}]}, {calls: [{tool: a}]}, {text: "<find#1/id>"}]')
    talk.ask()
    talk.answer('{"id":"x1"}')
    talk.messages = talk.messages[-1:]
    assert talk.answer("ok").reply.text == "x1"


def test_a_reference_to_nothing_fails_the_run_and_names_the_turn() -> None:
    talk = Conversation('turns:\n- calls: [{tool: find}]\n- text: "<find#1/id>"\n', seed=1)
    talk.ask()
    with pytest.raises(ScriptFailure, match=r"the result has no such place \(<memory>:3\)") as caught:
        talk.answer('{"no":"id"}')
    assert caught.value.kind == "reference_missing"


def test_a_literal_turn_keeps_what_looks_like_a_reference() -> None:
    talk = Conversation('turns: [{text: "<find#1/id>", calls: [{tool: a, args: {b: "<find#1/id>"}}], literal: true}]')
    reply = talk.ask().reply
    assert (reply.text, reply.calls[0].args) == ("<find#1/id>", {"b": "<find#1/id>"})


def test_ids_follow_from_the_seed() -> None:
    text = "turns: [{calls: [{tool: a}, {tool: a}, {tool: a, id: fixed}, {tool: a, id: null}]}]"
    ids = [call.call_id for call in Conversation(text).ask().reply.calls]
    assert ids == [call.call_id for call in Conversation(text).ask().reply.calls]
    assert ids[2:] == ["fixed", None]
    assert len(set(ids)) == 4
    others = [call.call_id for call in Conversation(text, seed=8).ask().reply.calls]
    assert set(ids[:2]).isdisjoint(others)


def test_an_error_is_a_turn_and_no_reply() -> None:
    talk = Conversation("turns: [{error: {status: 429}, repeat: 2}, {text: b}]")
    assert [talk.ask().turn.error is not None for _ in range(3)] == [True, True, False]


def test_results_are_new_once() -> None:
    talk = Conversation("turns: [{calls: [{tool: a, id: c}], repeat: 3}, {text: b}]")
    talk.ask()
    talk.ask(Result("c", "1"))
    assert [seen.result.text for seen in talk.intake.new_results] == ["1"]
    talk.ask(Result("c", "2"))
    assert [seen.result.text for seen in talk.intake.new_results] == ["2"], "an id may be used again"
    talk.ask()
    assert talk.intake.new_results == ()


def test_two_results_of_one_id_go_to_its_two_calls_in_order() -> None:
    talk = Conversation("turns: [{calls: [{tool: a, id: c}, {tool: b, id: c}]}, {text: done}]")
    talk.ask()
    talk.ask(Result("c", "1"), Result("c", "2"))
    assert [(seen.call.call.tool_name if seen.call else None) for seen in talk.intake.new_results] == ["a", "b"]


def test_a_result_under_an_id_of_the_agents_own_answers_the_call_without_one() -> None:
    talk = Conversation("turns: [{calls: [{tool: a, id: null}]}, {text: again, when: {status: missing}}, {text: done}]")
    talk.ask()
    served = talk.answer("x")
    assert served.reply.text == "done"
    assert [seen.call.event_id if seen.call else None for seen in talk.intake.new_results] == ["call-1-1"]


def test_a_result_of_no_call_is_seen_as_such() -> None:
    talk = Conversation("turns: [{calls: [{tool: a}]}, {text: b}]")
    talk.ask()
    talk.ask(Result("call_of_nobody", "x"))
    assert [seen.call for seen in talk.intake.new_results] == [None]


AGENTS = """
agents:
  planner: {match: {system_contains: You plan}, turns: [{calls: [{tool: delegate}]}, {text: planned}]}
  coder: {match: {tools: [edit], model: big}, turns: [{text: coded}]}
  main: {turns: [{text: talked}]}
"""


@pytest.mark.parametrize(
    ("fields", "agent"),
    [
        ({"system": "You plan things."}, "planner"),
        ({"tools": ("read", "edit"), "model": "big"}, "coder"),
        ({"tools": ("read", "edit"), "model": "small"}, "main"),
        ({}, "main"),
    ],
)
def test_an_agent_is_told_by_its_request(fields: dict[str, object], agent: str) -> None:
    assert Conversation(AGENTS, **fields).ask().agent == agent  # type: ignore[arg-type]


def test_a_request_of_no_agent_fails_the_run() -> None:
    talk = Conversation("agents: {a: {match: {model: x}, turns: [{text: b}]}}")
    with pytest.raises(ScriptFailure, match="of none of the script's agents: a"):
        talk.ask()
    assert talk.player.failure is not None


def test_what_a_request_does_not_declare_is_noted() -> None:
    talk = Conversation("turns: [{calls: [{tool: a}, {tool: b}]}]", tools=("a",))
    talk.ask()
    assert talk.player.notes == ["<memory>:1: the request did not declare the tool b"]


def test_names_with_signs_of_their_own_can_be_referred_to() -> None:
    talk = Conversation('turns: [{calls: [{tool: "mcp/find#x"}]}, {text: "<mcp%2Ffind%23x#1/id>"}]')
    talk.ask()
    assert talk.answer('{"id":"y"}').reply.text == "y"


def test_calls_compare_by_their_canonical_arguments() -> None:
    assert Call("a", '{"b": 1, "a": 2.0}', "x").key == Call("a", '{"a":2,"b":1}', "y").key
    assert Call("a", '{"b": 1', "x").key != Call("a", '{"b": 1}', "x").key
