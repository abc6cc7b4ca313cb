"""Which call meets which step, how a call is found, and what the trace says of it."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from goldentrace.codec.canonical import decode
from goldentrace.codec.trace import read_trace
from goldentrace.errors import InfrastructureError
from goldentrace.faults import FaultsHandle
from goldentrace.model.event import Effect, Limit, ToolCall, ToolResult
from goldentrace.normalize.operations import group
from tests.faults.serving import Client, kinds
from tests.traces import AlikeByBytes

Serve = Callable[..., FaultsHandle]
Open = Callable[..., Client]

STATUSES = """
plan: p
tools:
  a:
    result: {n: "{n}"}
    steps: [{fault: status, status: 500, times: 2}, {fault: status, status: 429}, {fault: none}]
    after_steps: %s
  b: {result: b}
"""


@pytest.mark.parametrize(
    ("after", "statuses"), [("error", [200, 500, 500]), ("ok", [200, 200, 200]), ("repeat", [200, 200, 200])]
)
def test_calls_meet_the_steps_in_order(serve: Serve, client: Open, after: str, statuses: list[int]) -> None:
    server = serve(STATUSES % after)
    caller = client(server)
    assert [caller.call("a").status for _ in range(6)] == [500, 500, 429, *statuses]
    assert caller.call("b").value == "b", "another tool has its own count"
    assert bool(server.failures()) == (after == "error")


def test_running_past_the_steps_fails_the_run_and_says_how_to_go_on(serve: Serve, client: Open) -> None:
    server = serve("plan: p\ntools:\n  a: {steps: [{fault: none}]}\n")
    caller = client(server)
    caller.call("a")
    assert caller.call("a").value["error"]["type"] == "script_exhausted"
    with pytest.raises(InfrastructureError) as caught:
        server.check()
    assert "call 2 is beyond the last step" in caught.value.what
    assert "after_steps: ok" in caught.value.next_step


def test_steps_that_were_not_used_are_told(serve: Serve, client: Open) -> None:
    server = serve(STATUSES % "ok")
    client(server).call("a")
    assert server._admin("GET", "verify", None)["unused_steps"] == {"a": 3}


def test_calls_at_once_take_one_step_each(serve: Serve, client: Open) -> None:
    steps = ", ".join(f"{{fault: status, status: {500 + n}}}" for n in range(40))
    server = serve(f"plan: p\ntools:\n  a: {{steps: [{steps}]}}\n")

    def call(_: int) -> list[int]:
        caller = client(server)
        return [caller.call("a").status for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        statuses = [status for part in pool.map(call, range(8)) for status in part]
    assert sorted(statuses) == [500 + n for n in range(40)]
    assert not server.failures()


def test_runs_do_not_share_steps_or_ledgers(serve: Serve, client: Open, tmp_path: Path) -> None:
    text = "plan: p\ntools:\n  a: {effect_record: {e: 1}, steps: [{fault: status, status: 500}], after_steps: ok}\n"
    server = serve(text, journal_path=tmp_path / "j.jsonl")
    caller = client(server)
    assert caller.call("a").status == 500
    assert caller.request("POST", "/runs/other/tools/a", {}).status == 500
    assert caller.call("a", X_Goldentrace_Run="other").status == 200
    assert server.effects() == []
    assert len(server.effects("other")) == 1
    assert len(read_trace((tmp_path / "j.other.jsonl").read_bytes(), "j").calls()) == 2


@pytest.mark.parametrize("run_id", ["../x", "a" * 65, ".hidden"])
def test_a_run_id_cannot_leave_the_folder(serve: Serve, client: Open, run_id: str) -> None:
    server = serve("plan: p\ntools:\n  a: {}\n")
    assert client(server).call("a", X_Goldentrace_Run=run_id).status == 404


def test_routes_stand_in_for_any_api(serve: Serve, client: Open) -> None:
    server = serve("""
plan: p
tools:
  charge: {route: POST /v1/charges, result: "{/}"}
  status: {route: "GET /v1/charges/{id}", result: {id: "{/id}", expand: "{/expand}"}}
  latest: {route: GET /v1/charges/latest, result: latest}
""")
    caller = client(server)
    assert caller.request("POST", "/v1/charges", {"amount": 1}).status == 200
    assert caller.request("GET", "/v1/charges/ch%201?expand=card").value == {"id": "ch 1", "expand": "card"}
    assert caller.request("GET", "/v1/charges/latest").value == "latest"
    assert caller.request("POST", "/v1/charges/x", {}).status == 404
    assert [call["tool"] for call in server.calls()] == ["charge", "status", "latest"]


def test_the_tools_are_listed(serve: Serve, client: Open) -> None:
    server = serve("plan: p\ntools:\n  a: {description: does a, schema: {type: object, required: [x]}}\n")
    assert client(server).request("GET", "/tools").value == {
        "tools": [{"name": "a", "description": "does a", "parameters": {"type": "object", "required": ["x"]}}]
    }


@pytest.mark.parametrize("path", ["/tools/chrage", "/", "/tools/", "/charge/x"])
def test_an_unmatched_request_fails_the_run_and_names_the_nearest_tool(serve: Serve, client: Open, path: str) -> None:
    server = serve("plan: p\ntools:\n  charge: {}\n")
    answer = client(server).request("POST", path, {})
    assert (answer.status, answer.value["error"]["type"]) == (404, "unmatched_request")
    (failure,) = server.failures()
    assert f"POST {path} matches no tool" in failure.what
    assert "charge" in failure.next_step


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"amount": "x"}', "invalid_arguments"),
        (b"{}", "invalid_arguments"),
        (b"[1]", "malformed_arguments"),
        (b'{"amount": 1', "malformed_arguments"),
        (b"\xff", "malformed_arguments"),
        (b'{"amount": NaN}', "malformed_arguments"),
        (b'{"amount": ' + b"[" * 5000 + b"]" * 5000 + b"}", "malformed_arguments"),
        (b'{"amount": 1' + b"0" * 5000 + b"}", "malformed_arguments"),
    ],
)
def test_arguments_that_break_the_contract_are_a_400_and_no_effect(
    serve: Serve, client: Open, body: bytes, kind: str
) -> None:
    schema = "{type: object, required: [amount], properties: {amount: {type: integer}}}"
    server = serve(f"plan: p\ntools:\n  a: {{schema: {schema}, effect_record: {{e: 1}}}}\n")
    answer = client(server).request("POST", "/tools/a", body)
    assert answer.status == 400
    assert answer.value["error"]["type"] == kind
    assert server.effects() == []
    assert not server.failures(), "a wrong call is the agent's behaviour, not a failure of the run"
    (call, result) = server.events()
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert (call.args_raw is not None) == (kind == "malformed_arguments" and body != b"[1]")
    assert (result.status, result.error_class, result.http_status) == ("error", "bad_request", 400)


def test_a_violation_says_where(serve: Serve, client: Open) -> None:
    schema = "{type: object, properties: {card: {type: object, properties: {'a/b': {type: integer}}}}}"
    server = serve(f"plan: p\ntools:\n  a: {{schema: {schema}}}\n")
    answer = client(server).call("a", {"card": {"a/b": "x"}})
    assert answer.value["error"]["violations"] == [{"path": "/card/a~1b", "message": "'x' is not of type 'integer'"}]


def test_a_schema_is_never_fetched(serve: Serve, client: Open) -> None:
    schema = "{properties: {a: {$ref: '#/$defs/n'}}, $defs: {n: {type: integer}}}"
    server = serve(f"plan: p\ntools:\n  a: {{schema: {schema}}}\n")
    assert client(server).call("a", {"a": "x"}).status == 400
    assert client(server).call("a", {"a": 1}).status == 200


def test_results_may_differ_from_call_to_call(serve: Serve, client: Open) -> None:
    server = serve("""
plan: p
tools:
  poll:
    result: {state: done}
    steps: [{fault: none, result: {state: pending, n: "{n}"}, times: 2}, {fault: none}]
""")
    caller = client(server)
    assert [caller.call("poll").value for _ in range(3)] == [
        {"state": "pending", "n": 1},
        {"state": "pending", "n": 2},
        {"state": "done"},
    ]


def test_pages_are_cut_and_continued(serve: Serve, client: Open) -> None:
    server = serve("""
plan: p
tools:
  orders:
    access: read
    pages: {items: /orders, cursor: /next, argument: /cursor}
    result: {orders: [a, b, c, d]}
    steps: [{fault: truncated_page, keep: 3}, {fault: none}]
""")
    caller = client(server)
    first = caller.call("orders").value
    assert first["orders"] == ["a", "b", "c"]
    assert caller.call("orders", {"cursor": first["next"]}).value == {"orders": ["d"]}
    results = [event for event in server.events() if isinstance(event, ToolResult)]
    assert [(result.status, decode(result.result)) for result in results] == [
        ("ok", first),
        ("ok", {"orders": ["d"]}),
    ]


def test_an_expired_credential_is_refused_until_another_comes(serve: Serve, client: Open) -> None:
    server = serve("plan: p\ntools:\n  a: {steps: [{fault: auth_expired, sticky: true}, {fault: none}]}\n")
    caller = client(server)
    answers = [caller.call("a", Authorization=f"Bearer {token}") for token in ("old", "old", "new")]
    assert [answer.status for answer in answers] == [401, 401, 200]
    assert 'error="invalid_token"' in answers[0].headers["www-authenticate"]
    assert not server.failures()
    assert "Bearer" not in server.journal_path.read_text()


def test_a_denial_is_a_status_of_its_own(serve: Serve, client: Open) -> None:
    server = serve("plan: p\ntools:\n  a: {steps: [{fault: denied}]}\n")
    assert client(server).call("a").status == 403
    assert kinds(server.events()) == ["tool_call", "tool_result:denied"]


# --- the trace --------------------------------------------------------------------------------------------------------

CHARGE = """
plan: p
seed: 5
tools:
  charge:
    access: write
    idempotency: {key: /key}
    result: {id: "ch_{new_id}"}
    effect_record: {charge: "{/amount}"}
    steps: [{fault: reset, phase: after_commit}, {fault: status, status: 429, retry_after: 1}, {fault: none}]
"""


def test_attempts_of_one_key_are_one_operation(serve: Serve, client: Open, tmp_path: Path) -> None:
    server = serve(CHARGE, run_id="r1", journal_path=tmp_path / "j.jsonl", scenario_id="lost")
    for _ in range(3):
        caller = client(server)
        try:
            caller.call("charge", {"amount": 500, "key": "k"})
        except ConnectionError:
            continue
    server.stop()
    assert kinds(server.events()) == [
        "tool_call", "effect", "tool_result:error", "tool_call", "tool_result:error", "tool_call", "tool_result:ok",
    ]  # fmt: skip
    trace = read_trace((tmp_path / "j.jsonl").read_bytes(), "j.jsonl")
    assert (trace.incomplete, trace.start.scenario_id, trace.start.seed, trace.start.trace_id) == (
        None,
        "lost",
        5,
        "r1",
    )
    (operation,) = group(trace, AlikeByBytes()).groups
    tries = [item for item in operation.tries() if item.result is not None]
    assert [(item.call.attempt, item.call.origin) for item in tries] == [(1, "model"), (2, "harness"), (3, "harness")]
    assert [item.result.error_class for item in tries if item.result] == ["reset", "rate_limited", None]
    assert [item.result.owed_ms for item in tries if item.result] == [None, 1000.0, None]
    assert {item.call.idempotency_key for item in tries} == {"k"}


def test_asking_again_after_an_answer_is_a_new_operation(serve: Serve, client: Open) -> None:
    server = serve(
        CHARGE.replace("steps", "after_steps: ok\n    steps").replace("fault: reset", "fault: slow, delay_ms: 1")
    )
    caller = client(server)
    for _ in range(4):
        caller.call("charge", {"amount": 500, "key": "k"})
    calls = [event for event in server.events() if isinstance(event, ToolCall)]
    assert [call.op_id for call in calls] == [None, None, "call_2", None]


def test_what_the_request_says_about_itself_is_taken(serve: Serve, client: Open) -> None:
    server = serve("plan: p\ntools:\n  a: {}\n")
    caller = client(server)
    caller.call("a", X_Goldentrace_Call_Id="toolu_1", X_Goldentrace_Attempt="3", X_Goldentrace_Origin="transport")
    caller.call("a", {"x": 1}, amz_sdk_request="attempt=2; max=3")
    calls = [event for event in server.events() if isinstance(event, ToolCall)]
    assert [(call.call_id, call.attempt, call.origin) for call in calls] == [
        ("toolu_1", 3, "transport"),
        ("call_2", 2, "sdk"),
    ]


def test_the_exact_wait_of_a_date_is_written_down(serve: Serve, client: Open) -> None:
    server = serve("plan: p\ntools:\n  a: {steps: [{fault: status, status: 429, retry_after: {date_in_ms: 1500}}]}\n")
    client(server).call("a")
    result = server.events()[1]
    assert isinstance(result, ToolResult)
    assert result.owed_ms is not None
    assert 1500 <= result.owed_ms < 2500


def test_a_limit_on_calls_ends_the_run(serve: Serve, client: Open) -> None:
    server = serve("plan: p\ntools:\n  a: {effect_record: {e: 1}}\nlimits: {max_tool_calls: 2}\n")
    caller = client(server)
    assert [caller.call("a").status for _ in range(4)] == [200, 200, 503, 503]
    limits = [event for event in server.events() if isinstance(event, Limit)]
    assert [(limit.limit, limit.value, limit.max) for limit in limits] == [("max_tool_calls", 3, 2)]
    assert len(server.effects()) == 2
    assert server.ready()["state"] == "stopped"
    assert not server.failures(), "a limit that fires is behaviour"


def test_a_limit_on_time_ends_what_hangs(serve: Serve, client: Open) -> None:
    server = serve("plan: p\ntools:\n  a: {steps: [{fault: hang}], after_steps: repeat}\nlimits: {max_wall_ms: 300}\n")
    begun = time.monotonic()
    with pytest.raises((ConnectionError, OSError)):
        client(server).call("a")
    assert time.monotonic() - begun < 2
    assert client(server).call("a").status == 503
    assert [event.limit for event in server.events() if isinstance(event, Limit)] == ["max_wall_ms"]


def test_a_late_commit_still_commits_unless_the_plan_says_otherwise(serve: Serve, client: Open) -> None:
    text = "plan: p\ntools:\n  a: {effect_record: {e: 1}, steps: [{fault: slow, delay_ms: 400%s}]}\n"
    for option, effects in (("", 1), (", on_disconnect: cancel", 0)):
        server = serve(text % option)
        caller = client(server, timeout_s=0.15)
        with pytest.raises(TimeoutError):
            caller.call("a")
        caller.close()
        time.sleep(0.5)
        assert len(server.effects()) == effects
        assert len([event for event in server.events() if isinstance(event, Effect)]) == effects


def test_chaos_is_written_down_and_can_be_pinned(serve: Serve, client: Open) -> None:
    chaos = "plan: p\nseed: 4\nchaos: {rate: 0.6, faults: [{fault: status, status: 500}, {fault: denied}]}\ntools: {a: {}}\n"
    server = serve(chaos)
    caller = client(server)
    first = [caller.call("a").status for _ in range(20)]
    assert len(set(first)) == 3
    pinned = server.pinned()
    calls = [event for event in server.events() if isinstance(event, ToolCall)]
    assert all((call.extra or {})["server"]["is_drawn"] for call in calls)
    steps = str(pinned["a"]["steps"]).replace("'", '"')
    again = serve(f"plan: p\ntools: {{a: {{steps: {steps}}}}}\n")
    caller = client(again)
    assert [caller.call("a").status for _ in range(20)] == first


def test_equal_seeds_make_equal_runs(serve: Serve, client: Open) -> None:
    text = "plan: p\ntools:\n  a: {result: {id: '{new_id}', uuid: '{new_uuid}'}}\n"
    bodies = [client(serve(text, seed=seed)).call("a").body for seed in (1, 1, 2)]
    assert bodies[0] == bodies[1] != bodies[2]
