"""Golden files: read back as they were written, told apart from runs, and refused whole where one line is wrong."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.golden import encode_golden, golden_lines, is_golden, read_golden
from goldentrace.diff.differ import as_golden
from goldentrace.errors import InputError
from goldentrace.model.event import DECISION_KINDS
from goldentrace.model.normal import Header, NormalTrace
from goldentrace.model.operation import ApprovalStep, Attempt, DecisionStep, LooseEvent, Operation, make_label
from goldentrace.model.profile import Profile
from goldentrace.normalize.offsets import place_in_time
from tests.traces import Run, normal

START = b'{"type":"trace_start","format":"goldentrace/1","kind":"golden","profile":"p@1","profile_hash":"h:1"}\n'
CALL = b'{"type":"tool_call","call":"t#1","tool_name":"t"}\n'
RESULT = b'{"type":"tool_result","call":"t#1","status":"ok"}\n'
END = b'{"type":"trace_end","outcome":"success","stop_reason":"final_answer"}\n'

# -- what is written is read ------------------------------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=6)
WHOLE_MS = st.none() | st.integers(0, 10**6).map(float)
LEAVES = st.dictionaries(
    st.sampled_from(["", "/a", "/a/b", "/ü~1x", "#idempotency_key"]),
    st.sampled_from(["null", "int h:0123456789ab", "<new:uuid>", "\ud800"]) | st.fixed_dictionaries({"value": st.integers() | NAMES}),
    min_size=1,
    max_size=3,
)  # fmt: skip


@st.composite
def goldens(draw: st.DrawFn) -> NormalTrace:
    operations: list[Operation] = []
    loose: list[LooseEvent] = []
    turn = 0
    for number in range(draw(st.integers(0, 4))):
        agent, tool = draw(st.sampled_from(["main", "a b", "x/y"])), draw(NAMES)
        turn += draw(st.booleans()) or not operations or operations[-1].agent != agent
        steps: list[Any] = [ApprovalStep(verdict="approved", by="ann")] if draw(st.booleans()) else []
        for attempt in range(1, draw(st.integers(1, 3)) + 1):
            ended: dict[str, Any] = {"status": draw(st.sampled_from([None, "ok", "error"]))}
            if ended["status"] == "error":
                ended |= {"error_class": "server_error", "http_status": 503, "owed_ms": draw(WHOLE_MS)}
            if ended["status"] is not None:
                ended["result"] = draw(st.none() | LEAVES)
            own = draw(st.none() | LEAVES) if attempt > 1 else None
            steps.append(
                Attempt(
                    number=attempt, origin="model" if attempt == 1 else "sdk", after_model_turn=draw(st.booleans()),
                    gap_ms=draw(WHOLE_MS) if attempt > 1 else None, args=own, args_hash=own and "h:00", **ended,
                )
            )  # fmt: skip
            if draw(st.booleans()):
                steps.append(
                    DecisionStep(
                        decision=draw(st.sampled_from(DECISION_KINDS)), by="harness", reason=draw(st.none() | NAMES),
                        delay_ms=draw(WHOLE_MS), inferred=draw(st.booleans()),
                    )
                )  # fmt: skip
        args = draw(st.just({}) | LEAVES)
        operations.append(
            Operation(
                label=make_label(agent, tool, number + 1), tool_name=tool, agent=agent, turn=turn,
                batch=draw(st.none() | st.just(1)), access=draw(st.sampled_from([None, "read", "write"])),
                args=args, args_hash="h:11" if args else None, steps=steps,
                uses=tuple(o.label for o in operations if draw(st.booleans())),
                parent=draw(st.none() | st.sampled_from([o.label for o in operations])) if operations else None,
            )
        )  # fmt: skip
    for position in sorted(draw(st.lists(st.integers(0, len(operations)), max_size=3))):
        kind, fields = draw(
            st.sampled_from(
                [
                    ("decision", {"decision": "escalate", "agent": "main", "by": "model", "inferred": True}),
                    ("limit", {"limit": "max_tool_calls", "agent": "main", "max": 5}),
                    ("effect", {"name": "charge", "agent": "main", "key": "<t#1/id>", "value": {"/a": "int h:00"}}),
                ]
            )
        )
        loose.append(LooseEvent(kind=kind, position=position, fields=dict(fields)))
    header = draw(
        st.builds(
            Header, scenario_id=st.none() | NAMES, seed=st.none() | st.integers(0, 9), description=st.none() | NAMES,
            profile=NAMES, profile_hash=NAMES, states=st.none() | st.lists(st.sampled_from(DECISION_KINDS)).map(tuple),
            accepts=st.lists(st.just({"code": "GT1001", "reason": "r"}), max_size=2).map(tuple),
            backoff=st.none() | st.just({"policy": "none"}), seen=st.none() | st.integers(1, 9),
        )
    )  # fmt: skip
    return NormalTrace(
        header=header, operations=operations, loose=loose, outcome="partial", stop_reason="unknown", path="g",
        has_turns=bool(operations), has_times=False, is_golden=True,
    )  # fmt: skip


def shown(trace: NormalTrace) -> Any:
    """All that a golden holds, without the lines that it was read from."""

    def plain(value: Any) -> Any:
        fields = {
            name: getattr(value, name) for name in value.__struct_fields__ if "line" not in name and "index" not in name
        }
        return {name: [plain(step) for step in item] if name == "steps" else item for name, item in fields.items()}

    return (
        trace.header,
        [plain(o) for o in trace.operations],
        [plain(e) for e in trace.loose],
        trace.outcome,
        trace.stop_reason,
    )


@given(goldens())
def test_what_is_written_is_read_as_the_same_operations(trace: NormalTrace) -> None:
    data = encode_golden(trace)
    read = read_golden(data, "g")
    assert encode_golden(read) == data
    assert is_golden(data)
    assert shown(read) == shown(trace)


def test_every_step_points_at_its_line() -> None:
    trace = (
        Run(states=["retry", "abort"])
        .turn().approve("c1").call("t", {}, status="error", id="c1").decide("retry", "c1").decide("escalate")
        .call("t", {}, id="c2", attempt=2, op_id="c1", origin="harness").effect("charge").end()
    )  # fmt: skip
    data = encode_golden(as_golden(normal(trace), Profile(name="test@1")))
    read = read_golden(b"\n" + data.replace(b"\n", b"\n\n"), "g")
    rows = data.splitlines()
    (operation,) = read.operations
    places = [s.call_line if isinstance(s, Attempt) else s.line for s in operation.steps]
    kinds = [rows[(line - 2) // 2].split(b'"')[3] for line in places]
    assert kinds == [b"approval", b"tool_call", b"decision", b"tool_call"]
    assert [rows[(a.result_line - 2) // 2].split(b'"')[3] for a in operation.attempts] == [b"tool_result"] * 2
    assert [rows[(e.line - 2) // 2].split(b'"')[3] for e in read.loose] == [b"decision", b"effect"]
    assert rows[(read.end_line - 2) // 2] == END.strip()


def test_the_normalized_form_adds_offsets_and_reads_back_with_them() -> None:
    run = (
        Run().at(1).approve("c1").call("t", {}, status="error", id="c1").at(3.0005).decide("abort", "c1", delay_ms=1.5)
    )
    trace = run.limit("max_wall_ms", max=2).decide("escalate", delay_ms=7.25).at(4).end()
    timed = normal(trace)
    place_in_time(timed, trace)
    lines = golden_lines(timed, kind="normalized")
    assert [line.get("t_offset_ms") for line in lines[1:]] == [1000, 1000, 1000, 3000.5, 3000.5, 3000.5, 4000]
    assert not any("t_offset_ms" in line for line in golden_lines(timed))
    data = encode_golden(timed, kind="normalized")
    read = read_golden(data, "n")
    assert is_golden(data)
    assert read.has_times
    assert encode_golden(read, kind="normalized") == data


HOSTILE = [
    "a b",
    "a/b",
    "a#1",
    "<new:uuid>",
    "100%",
    "a\tb\n",
    "a>b",
    "é",
    "名",
    "\u2028",
    "main",
    "%2F",
    "a\u00a0b",
    "\x7f\x85",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("agent", ["main", *HOSTILE])
def test_hostile_names_of_tools_and_agents_survive_the_file_and_their_placeholders(name: str, agent: str) -> None:
    from goldentrace.diff.differ import compare

    uuid = "0f8fad5b-d9cb-469f-a165-708677289501"
    run = Run().call(name, {"n": 1}, {name: {"x y": uuid}}, agent=agent).call("use", {"id": uuid})
    profile = Profile(name="test@1")
    whole = normal(run.end(), profile)
    data = encode_golden(as_golden(whole, profile))
    read = read_golden(data, "g")
    assert (read.operations[0].tool_name, read.operations[0].agent) == (name, agent)
    assert encode_golden(read) == data
    assert compare(read, whole, profile).changes == []
    other = Run().call(name, {"n": 1}, {name: {"x y": uuid}}, agent=agent).call("use", {"id": uuid[:-1] + "7"})
    assert [c.code for c in compare(read, normal(other.end(), profile), profile).changes] == ["GT109"]


# -- told apart from runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "is_one"),
    [
        (START, True),
        (b"\xef\xbb\xbf\n \n" + START, True),
        (START.replace(b'"golden"', b'"normalized"'), True),
        (b'{"type":"trace_start","format":"goldentrace/1"}\n', False),
        (b'{"type":"trace_start","format":"goldentrace/1","attributes":{"kind":"golden"}}\n', False),
        (START.replace(b'"golden"', b'"other"'), False),
        (b'["trace_start","kind"]\n', False),
        (b'{"type":"trace_start","kind":\n', False),
        (b'{"type":"trace_start","kind":' + b"[" * 5000 + b"\n", False),
        (b'{"type":"message","role":"trace_start","kind":"golden"}', False),
        (b"", False),
    ],
)
def test_the_first_line_tells_a_golden_from_a_run(data: bytes, is_one: bool) -> None:
    assert is_golden(data) is is_one


# -- what is refused, and where ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "what", "line", "pointer"),
    [
        (b"", "it is empty", None, None),
        (b"\n\n", "it is empty", None, None),
        (CALL, "the first line of a golden is no trace_start", 1, None),
        (START + CALL + RESULT, "there is no trace_end", None, None),
        (START + START + END, "a second trace_start", 2, None),
        (START + END + CALL, "a line after trace_end", 3, None),
        (START + CALL + CALL + END, "a second first attempt of t#1", 3, None),
        (START + b'{"type":"tool_call","call":"t#1"}\n' + END, "a call without its tool_name", 2, None),
        (START + b'{"type":"tool_call","call":"t#1","attempt":2}\n' + END, "no line before this one opens the call t#1", 2, None),
        (START + b'{"type":"decision","call":"t#1","decision":"retry"}\n' + END, "no line opens the call t#1", 2, None),
        (START + RESULT + END, "a result that no open attempt 1 of t#1 waits for", 2, None),
        (START + CALL + RESULT + RESULT + END, "a result that no open attempt 1 of t#1 waits for", 4, None),
        (START + CALL + RESULT.replace(b"}", b',"attempt":2}') + END, "a result that no open attempt 2 of t#1 waits for", 3, None),
        (START + b"<<<<<<< HEAD\n" + END, "conflict marker", 2, None),
        (START + b"\0\0\n" + END, "a run of NUL bytes", 2, None),
        (START + b'{"type":"model_turn","agent":"\xff"}\n' + END, "not UTF-8", 2, None),
        (START + b'{"type":"model_turn","agent":"\\ud800","mood":1}\n' + END, "unknown field `mood`", 2, "$"),
        (START + b'{"type":"model_turn"\n' + END, "not JSON", 2, None),
        (START + b'{"type":"model_turn","agent":NaN}\n' + END, "NaN is not JSON", 2, None),
        (START + b'{"type":"later"}\n' + END, "invalid value 'later'", 2, "$.type"),
        (START + b'{"type":"model_turn","mood":1}\n' + END, "unknown field `mood`", 2, "$"),
        (START + b'{"type":"tool_call","call":"t#1","tool_name":"t","batch":"b"}\n' + END, "expected `int | null`", 2, "$.batch"),
        (START + b'{"type":"tool_call","call":"t#1","tool_name":"t","args":{"/a":{"value":%s}}}\n' % (b"[" * 5000 + b"]" * 5000) + END, "nested deeper than", 2, None),
        (START.replace(b"/1", b"/2") + END, "goldentrace/2", 1, "$.format"),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_line(data: bytes, what: str, line: int | None, pointer: str | None) -> None:
    with pytest.raises(InputError) as caught:
        read_golden(data, "g.jsonl")
    error = caught.value
    assert error.what.startswith("golden is not readable: ")
    assert what in error.what
    assert error.where is not None
    assert (error.where.path, error.where.line, error.where.pointer) == ("g.jsonl", line, pointer)
    assert "record it again" in error.next_step or "resolve" in error.next_step


def test_an_approval_may_stand_before_the_call_it_allows_but_not_without_one() -> None:
    approval = b'{"type":"approval","call":"t#1","verdict":"denied"}\n'
    (operation,) = read_golden(START + approval + CALL + RESULT + END, "g").operations
    assert [type(step) for step in operation.steps] == [ApprovalStep, Attempt]
    for data in (START + approval + END, START + approval + approval + CALL.replace(b"#1", b"#2") + END):
        with pytest.raises(InputError, match="no line opens the call t#1") as caught:
            read_golden(data, "g")
        assert caught.value.where is not None
        assert caught.value.where.line == 2
    with pytest.raises(InputError, match="no line before this one opens the call t#1"):
        read_golden(START + approval + CALL.replace(b"}", b',"attempt":2}') + END, "g")


def test_a_decision_about_a_call_may_stand_before_it() -> None:
    profile = Profile(name="test@1")
    whole = normal(Run().decide("fallback", "c1").call("t", {}).end(), profile)
    data = encode_golden(as_golden(whole, profile))
    (operation,) = read_golden(data, "g").operations
    assert [type(step) for step in operation.steps] == [DecisionStep, Attempt]


def test_a_lone_surrogate_in_the_name_of_an_argument_survives_the_file() -> None:
    profile = Profile(name="test@1")
    whole = normal(Run().call("t", {"\ud800": 1}).call("t", {"\udfff": "\ud800"}).end(), profile)
    data = encode_golden(as_golden(whole, profile))
    read = read_golden(data, "g")
    assert [list(o.args) for o in read.operations] == [["/\ud800"], ["/\udfff"]]
    assert encode_golden(read) == data


def test_an_empty_tool_name_is_a_name() -> None:
    call = b'{"type":"tool_call","call":"#1","tool_name":""}\n'
    assert read_golden(START + call + END, "g").operations[0].tool_name == ""
    with pytest.raises(InputError, match="a second first attempt of #1"):
        read_golden(START + call + call + END, "g")


def outcome(data: bytes) -> NormalTrace | InputError:
    try:
        return read_golden(data, "g")
    except InputError as error:
        return error


@given(st.binary(max_size=50))
def test_any_bytes_are_read_or_refused(tail: bytes) -> None:
    found = outcome(START + tail + CALL + END)
    if isinstance(found, InputError):
        assert found.where is not None
    else:
        assert encode_golden(read_golden(encode_golden(found), "again")) == encode_golden(found)
