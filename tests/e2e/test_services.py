"""A scenario with a scripted model and a fault-injecting tool server, end to end: run, record, break the agent, check."""

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import Cli

CONFIG = f"""
limits: {{max_wall_ms: 30000, max_tool_calls: 10}}
scenarios:
  charge:
    suite: shop
    description: waits out Retry-After, charges once
    command: {sys.executable} agent.py
    faults: faults/charge.yaml
    model: scripts/charge.yaml
    seed: 7
"""

PLAN = """
plan: charge
seed: 7
tools:
  get_order:
    access: read
    result: {order_id: "{new_id}", amount_cents: 4999}
  charge_card:
    access: write
    idempotency: {key: /idempotency_key}
    effect_record: {charge: "{/amount_cents}"}
    result: {status: charged}
    steps:
      - {fault: status, status: 429, retry_after: 1, phase: before_commit}
      - {fault: none}
expect: {effects: {charge: 1}}
"""

SCRIPT = """
script: charge
turns:
  - calls: [{tool: get_order, args: {ref: A-100}}]
  - calls: [{tool: charge_card, args: {order_id: "<get_order#1/order_id>", amount_cents: 4999, idempotency_key: k-1}}]
  - text: done
"""

AGENT = '''
"""An agent as people write them: a model loop over HTTP, tools over HTTP, a retry of 429. It records nothing itself."""
import json, os, time, urllib.error, urllib.request

def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)

def call_tool(name, args):
    url = os.environ["GOLDENTRACE_TOOLS_URL"] + "/tools/" + name
    for attempt in range(3):
        try:
            return post(url, args)
        except urllib.error.HTTPError as error:
            if error.code != 429 or attempt == 2:
                raise
            WAIT(float(error.headers["Retry-After"]))

def WAIT(seconds):
    time.sleep(seconds)

messages = [{"role": "user", "content": "charge order A-100"}]
while True:
    reply = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"model": "m", "messages": messages})
    message = reply["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        result = call_tool(call["function"]["name"], json.loads(call["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
print("answer:", message["content"])
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "faults").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "goldentrace.yaml").write_text(CONFIG)
    (tmp_path / "faults/charge.yaml").write_text(PLAN)
    (tmp_path / "scripts/charge.yaml").write_text(SCRIPT)
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def events(project: Path) -> list[dict[str, object]]:
    lines = (project / ".goldentrace/runs/shop/charge.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_an_agent_that_records_nothing_is_recorded_by_what_was_started_for_it(project: Path, cli: Cli) -> None:
    done = cli("run", "charge")
    assert done.code == 0, done.stderr
    found = events(project)
    calls = [event for event in found if event["type"] == "tool_call"]
    assert [(call["tool_name"], call.get("attempt", 1)) for call in calls] == [
        ("get_order", 1),
        ("charge_card", 1),
        ("charge_card", 2),
    ]
    assert sum(event["type"] == "effect" for event in found) == 1
    assert sum(event["type"] == "model_turn" for event in found) == 3
    assert (project / ".goldentrace/runs/shop/charge.log").read_text() == "answer: done\n"


def test_the_golden_holds_and_a_broken_agent_is_caught(project: Path, cli: Cli) -> None:
    done = cli("record", "charge")
    assert done.code == 0, done.stdout + done.stderr
    golden = (project / "goldens/shop/charge.jsonl").read_text()
    assert '"owed_ms":1000' in golden
    assert cli("check").code == 0
    (project / "agent.py").write_text(AGENT.replace("time.sleep(seconds)", "time.sleep(0.1)"))
    done = cli("check")
    assert done.code == 2, done.stderr
    assert "GT402" in done.stdout
    (project / "agent.py").write_text(AGENT.replace("error.code != 429", "True"))
    done = cli("check", "--output-format", "json")
    assert done.code in (2, 3)
    assert "Traceback" in (project / ".goldentrace/runs/shop/charge.log").read_text()  # the agent's own, in its log
    assert "Traceback" not in done.stderr


def test_a_request_that_the_plan_does_not_know_gives_no_verdict(project: Path, cli: Cli) -> None:
    (project / "agent.py").write_text(AGENT.replace('"/tools/" + name', '"/tools/other"'))
    done = cli("run", "charge")
    assert done.code == 3
    assert "other" in done.stderr
    assert not (project / ".goldentrace/runs/shop/charge.jsonl").exists()


def test_a_script_that_runs_out_gives_no_verdict(project: Path, cli: Cli) -> None:
    (project / "scripts/charge.yaml").write_text(SCRIPT.replace("  - text: done\n", ""))
    done = cli("run", "charge")
    assert done.code == 3
    assert "script" in done.stderr


def test_a_wrong_plan_names_its_line_and_starts_nothing(project: Path, cli: Cli) -> None:
    (project / "faults/charge.yaml").write_text(PLAN.replace("access: read", "acess: read"))
    done = cli("run", "charge")
    assert done.code == 3
    assert "charge.yaml:6" in done.stderr
    assert "did you mean access?" in done.stderr
    assert not (project / ".goldentrace/runs/shop/charge.log").exists()


def test_a_missing_plan_is_an_error(project: Path, cli: Cli) -> None:
    (project / "faults/charge.yaml").unlink()
    done = cli("run", "charge")
    assert done.code == 3
    assert "charge.yaml" in done.stderr
    assert "Traceback" not in done.stderr


RECORDING = (
    AGENT.replace(
        "def call_tool(name, args):",
        """
from goldentrace import Recorder
rec = Recorder()

def call_tool(name, args):
    return rec.wrap_tools({name: lambda **given: call_over_http(name, given)})[name](**args)

def call_over_http(name, args):""",
    )
    + """
rec.end("success", "final_answer")
rec.close()
"""
)


def test_an_agent_that_records_its_calls_gets_turns_and_attempts_from_the_servers(project: Path, cli: Cli) -> None:
    (project / "agent.py").write_text(RECORDING)
    done = cli("record", "charge")
    assert done.code == 0, done.stdout + done.stderr + (project / ".goldentrace/runs/shop/charge.log").read_text()
    found = events(project)
    assert sum(event["type"] == "model_turn" for event in found) == 3
    calls = [(e["tool_name"], e.get("attempt", 1), e.get("turn")) for e in found if e["type"] == "tool_call"]
    assert [call[:2] for call in calls if call[1] == 1] == [("get_order", 1), ("charge_card", 1)]
    assert sum(event["type"] == "effect" for event in found) == 1
    assert (found[-1]["outcome"], found[-1]["stop_reason"]) == ("success", "final_answer")
    assert cli("check").code == 0


def test_a_wrong_policy_of_a_scenario_starts_nothing(project: Path, cli: Cli) -> None:
    (project / "goldentrace.yaml").write_text(CONFIG + "    backoff: {policy: opnai}\n")
    done = cli("run", "charge")
    assert done.code == 3
    assert "goldentrace.yaml:11 $.scenarios.charge.backoff.policy" in done.stderr
    assert "did you mean openai?" in done.stderr
    assert not (project / ".goldentrace").exists()
