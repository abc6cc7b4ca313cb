"""Scripts from YAML: what is read, what is refused and how, and that writing and reading are each other's inverse."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given, settings

from goldentrace.codec.yaml_document import show_pointer
from goldentrace.errors import ConfigError
from goldentrace.replay.conversation import TokenUsage
from goldentrace.replay.script import (
    FOREVER,
    AgentScript,
    Condition,
    Cut,
    ProviderError,
    Script,
    ScriptedCall,
    ScriptTurn,
)
from goldentrace.replay.script_file import SCHEMA_PATH, parse_script, read_script, write_script
from tests.replay.strategies import scripts

WHOLE = """\
script: charge
description: one of everything
seed: 7
strict: false
error_texts: ["Error:"]
turns:
  - text: looking
    calls:
      - {tool: get_order, args: {order_ref: A-17, on: 2026-01-02, no: no}}
      - {tool: log, args_raw: '{"a"', id: call_fixed}
      - {tool: log, id: null}
    usage: {input_tokens: 9, output_tokens: 3, cached_tokens: 2}
  - when: {status: error, tool: get_order, contains: busy}
    calls: [{tool: get_order}]
    repeat: 2
  - when: [{status: missing}, {user_contains: again}]
    error: {status: 429, type: t, code: c, message: m, headers: {retry-after: 2, X-A: "b"}}
  - text: half
    cut: {at: text, how: reset}
    delay_ms: 2.5
  - cut: before_reply
  - text: half of it
    error: {status: 529, in_stream: true}
  - text: "<get_order#1/id>"
    finish: length
    literal: true
    repeat: forever
"""


def untraced(script: Script) -> Script:
    """Return a script without the places that only a file has."""
    agents = tuple(
        replace(agent, turns=tuple(replace(turn, line=0) for turn in agent.turns)) for agent in script.agents
    )
    return replace(script, agents=agents, path="<memory>")


def test_everything_that_a_script_can_say_is_read(tmp_path: Path) -> None:
    path = tmp_path / "charge.yaml"
    path.write_text(WHOLE)
    script = read_script(path)
    assert (script.name, script.seed, script.is_strict, script.error_texts) == ("charge", 7, False, ("Error:",))
    first, second, third, fourth, fifth, sixth, last = script.agents[0].turns
    assert first == ScriptTurn(
        text="looking",
        calls=(
            ScriptedCall("get_order", {"order_ref": "A-17", "on": "2026-01-02", "no": False}),
            ScriptedCall("log", None, '{"a"', "call_fixed"),
            ScriptedCall("log", {}, has_id=False),
        ),
        usage=TokenUsage(9, 3, 2),
        line=7,
    )
    assert (second.when, second.repeat) == ((Condition("error", "get_order", "busy"),), 2)
    assert third.when == (Condition("missing"), Condition(user_contains="again"))
    assert third.error == ProviderError(429, "t", "c", "m", (("retry-after", "2"), ("X-A", "b")))
    assert (fourth.cut, fourth.delay_ms) == (Cut("text", "reset"), 2.5)
    assert fifth.cut == Cut("before_reply")
    assert sixth.error is not None
    assert sixth.error.is_in_stream
    assert (last.finish, last.is_literal, last.repeat) == ("length", True, FOREVER)


def test_the_name_is_that_of_the_file_where_none_is_given(tmp_path: Path) -> None:
    path = tmp_path / "refund.yaml"
    path.write_text("turns: [{text: hi}]")
    assert read_script(path).name == "refund"


def test_agents_have_turns_of_their_own() -> None:
    script = parse_script(
        "agents:\n"
        "  planner: {match: {system_contains: plan, tools: [search], model: m}, turns: [{text: a}]}\n"
        "  writer: {turns: [{text: b}]}\n"
    )
    planner, writer = script.agents
    assert (planner.system_contains, planner.tools, planner.model) == ("plan", ("search",), "m")
    assert writer == AgentScript("writer", writer.turns)


@pytest.mark.parametrize(
    ("text", "line", "pointer", "what", "hint"),
    [
        ("turns:\n  - texd: hi", 2, "/turns/0/texd", "unknown key 'texd'", "text"),
        ("turns:\n  - calls:\n    - {tool: a, arg: {}}", 3, "/turns/0/calls/0/arg", "unknown key 'arg'", "args"),
        ("turns:\n  - text: 5", 2, "/turns/0/text", "text is needed", "quote it"),
        ("turns:\n  - calls: [{args: {}}]", 2, "/turns/0/calls/0", "without `tool`", "name"),
        ("turns:\n  - calls: [{tool: a, args: [1]}]", 2, "/turns/0/calls/0/args", "a mapping is needed", "mapping"),
        ("turns:\n  - {calls: [{tool: a, args: {}, args_raw: x}]}", 2, "/turns/0/calls/0/args_raw", "both", "keep one"),
        ("turns:\n  - {text: a, when: {status: eror}}", 2, "/turns/0/when/status", "'eror' is no `status`", "error"),
        ("turns:\n  - {text: a, when: {}}", 2, "/turns/0/when", "an empty condition", "status"),
        ("turns:\n  - error: {status: 200}", 2, "/turns/0/error/status", "400 to 599", "429"),
        ("turns:\n  - {text: a, error: {status: 500}}", 2, "/turns/0/error", "an error beside a reply", "in_stream"),
        (
            "turns:\n  - error: {status: 500, headers: {a b: c}}",
            2,
            "/turns/0/error/headers/a b",
            "no header name",
            "hyphens",
        ),
        ("turns:\n  - error: {status: 500, headers: {a: 'x\ny'}}", 2, None, "", ""),
        ("turns:\n  - {text: a, cut: midle}", 2, "/turns/0/cut", "'midle' is no `at`", ""),
        ("turns:\n  - cut: arguments", 2, "/turns/0/cut", "no arguments to cut", "before_reply"),
        ("turns:\n  - {text: a, repeat: 0}", 2, "/turns/0/repeat", "count from 1", "repeat: 3"),
        ("turns:\n  - {text: a, repeat: forever}\n  - text: b", 3, "/turns/1", "never reached", "when"),
        ("turns:\n  - {text: a, delay_ms: -1}", 2, "/turns/0/delay_ms", "a delay is", "250"),
        ("turns:\n  - {text: a, usage: {input_tokens: -1}}", 2, "/turns/0/usage/input_tokens", "negative", "0 or more"),
        ("turns:\n  - {delay_ms: 5}", 2, "/turns/0", "says nothing", "text"),
        ("turns: []", 1, "/turns", "no turn", "at least one"),
        ("turns: [{text: a}]\nagents: {}", 1, None, "both `turns` and `agents`", "several"),
        ("script: a", 1, None, "neither `turns` nor `agents`", "several"),
        ("agents: {a: {}}", 1, "/agents/a", "without `turns`", "list its turns"),
        ("turn: [{text: a}]", 1, "/turn", "unknown key 'turn'", "turns"),
        ("- a", 1, None, "a mapping is needed", "mapping"),
        ("", None, None, "a mapping is needed", "mapping"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    text: str, line: int | None, pointer: str | None, what: str, hint: str
) -> None:
    if not what:
        parse_script(text, "s.yaml")  # a folded line: YAML makes a blank of it
        return
    with pytest.raises(ConfigError) as caught:
        parse_script(text, "s.yaml")
    error = caught.value
    assert error.where is not None
    assert (error.where.path, error.where.line, error.where.pointer) == ("s.yaml", line, show_pointer(pointer or ""))
    assert what in error.what
    assert hint in error.next_step


def test_a_script_that_is_not_there_is_an_error_of_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_script(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="directory"):
        read_script(tmp_path)


@given(scripts())
@settings(max_examples=150)
def test_writing_and_reading_are_inverse(script: Script) -> None:
    assert untraced(parse_script(write_script(script))) == script


SCHEMA = jsonschema.Draft202012Validator(json.loads(SCHEMA_PATH.read_text()))


@given(scripts())
@settings(max_examples=100)
def test_what_is_written_is_what_the_schema_allows(script: Script) -> None:
    SCHEMA.validate(yaml.safe_load(write_script(script)))


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        "turns: [{text: hi}]",
        "agents: {a: {match: {tools: [b]}, turns: [{text: c}]}}",
        "turns: [{texd: hi}]",
        "turns: [{calls: [{tool: a, args: [1]}]}]",
        "turns: [{calls: [{tool: a, args: {}, args_raw: x}]}]",
        "turns: [{calls: [{tool: ''}]}]",
        "turns: [{calls: [{tool: a, id: ''}]}]",
        "turns: [{text: a, when: {}}]",
        "turns: [{text: a, when: []}]",
        "turns: [{text: a, when: {status: missing, contains: b}}]",
        "turns: [{text: a, when: {status: maybe}}]",
        "turns: [{error: {status: 399}}]",
        "turns: [{error: {status: 600}}]",
        "turns: [{error: {status: 500}, text: a}]",
        "turns: [{error: {status: 500, in_stream: true}, text: a}]",
        "turns: [{error: {status: 500, in_stream: false}, text: a}]",
        "turns: [{error: {status: 500}, cut: end}]",
        "turns: [{error: {status: 500, headers: {'a b': c}}}]",
        "turns: [{error: {status: 500, headers: {a: true}}}]",
        "turns: [{error: {status: 500, headers: {a: 1.5}}}]",
        'turns: [{error: {status: 500, headers: {a: "ä"}}}]',
        "turns: [{cut: {how: close}}]",
        "turns: [{cut: {at: end, how: slowly}}]",
        "turns: [{text: a, repeat: 0}]",
        "turns: [{text: a, repeat: true}]",
        "turns: [{text: a, repeat: never}]",
        "turns: [{text: a, delay_ms: 600001}]",
        "turns: [{delay_ms: 1}]",
        "turns: []",
        "agents: {}",
        "script: a",
        "{turns: [{text: a}], agents: {a: {turns: [{text: a}]}}}",
        "{turns: [{text: a}], seed: 1.5}",
        "{turns: [{text: a}], error_texts: ['']}",
    ],
)
def test_the_schema_and_the_reader_agree(text: str) -> None:
    try:
        parse_script(text)
    except ConfigError:
        is_read = False
    else:
        is_read = True
    value = yaml.safe_load(text)
    if text is WHOLE:
        value["turns"][0]["calls"][0]["args"]["on"] = "2026-01-02"  # the standard loader makes a date of it
    assert SCHEMA.is_valid(value) == is_read
