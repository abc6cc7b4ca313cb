"""Counts of calls, results and errors in files of agents' sessions, by plain code that shares nothing with the importers.

Only the standard library and a YAML parser. A call that was refused counts as an error, one without an answer as no result.
Each function returns one Counter a run, in the order of the file.
"""

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.corpus.counting.messages import blocks


def rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().split("\n") if line.strip()]


def claude_file(path: Path) -> Counter[str]:
    """A row that compaction wrote again has the uuid of the first one."""
    seen: set[str] = set()
    contents = []
    for row in rows(path):
        if row.get("uuid") in seen or row["type"] not in ("user", "assistant"):
            continue
        seen.add(row.get("uuid", f"none {len(seen)}"))
        contents.append(row["message"]["content"])
    return blocks(contents)


def claude_session(path: Path) -> list[Counter[str]]:
    """With the files of its subagents: all in its own folder, and those that it names beside it."""
    total = claude_file(path)
    named = {
        row["toolUseResult"]["agentId"]
        for row in rows(path)
        if isinstance(row.get("toolUseResult"), dict) and "agentId" in row["toolUseResult"]
    }
    files = set((path.parent / path.stem / "subagents").glob("*.jsonl"))
    files |= {file for name in named if (file := path.with_name(f"agent-{name}.jsonl")).exists()}
    for file in files:
        total += claude_file(file)
    return [total]


def claude_stream(path: Path) -> list[Counter[str]]:
    given = json.loads(path.read_text()) if path.suffix == ".json" else rows(path)
    messages = [each["message"] for each in given["messages"]] if isinstance(given, dict) else given
    return [blocks(each["message"]["content"] for each in messages if each["type"] in ("user", "assistant"))]


def managed_agent(path: Path) -> list[Counter[str]]:
    events = [row[1] for row in rows(path) if row[0].endswith("events.stream")]
    kinds = [event["type"] for event in events]
    failed = sum(event["type"].endswith("tool_result") and event.get("is_error") is True for event in events)
    return [
        Counter(
            calls=sum(kind.endswith("tool_use") for kind in kinds),
            results=sum(kind.endswith("tool_result") for kind in kinds),
            errors=failed,
        )
    ]


def codex(path: Path) -> list[Counter[str]]:
    """Items, and the ends of MCP calls that no item tells; what a server ran (`id`, no `call_id`) is its own result."""
    found: Counter[str] = Counter()
    items = [
        row.get("payload", row) for row in rows(path) if row.get("type") == "response_item" or "payload" not in row
    ]
    told = {item.get("call_id") for item in items}
    for item in items:
        kind = item.get("type") or ""
        found["calls"] += kind.endswith("_call")
        found["results"] += kind.endswith("_output") or (kind.endswith("_call") and "call_id" not in item)
        if kind == "function_call_output" and isinstance(item["output"], str):
            found["errors"] += has_failed(item["output"])
    for row in rows(path):
        event = row.get("payload", {})
        if event.get("type") == "mcp_tool_call_end" and event["call_id"] not in told:
            found += Counter(calls=1, results=1, errors="Err" in event["result"] or event["result"]["Ok"]["isError"])
    return [found]


def has_failed(output: str) -> bool:
    """An exit code other than 0, in either of its two forms, or that the sandbox or the user kept a command from running."""
    code = (
        re.search(r'"exit_code":(-?\d+),"duration_seconds"', output)
        if output.startswith('{"output"')
        else re.match(r"Process exited with code (-?\d+)", output)
    )
    return output.startswith(("failed in sandbox", "patch rejected by user")) or (
        code is not None and code.group(1) != "0"
    )


def codex_exec(path: Path) -> list[Counter[str]]:
    items = [
        row["item"]
        for row in rows(path)
        if row["type"] == "item.completed"
        and row["item"]["type"] in ("command_execution", "file_change", "mcp_tool_call")
    ]
    return [Counter(calls=len(items), results=len(items), errors=sum(item.get("exit_code", 0) != 0 for item in items))]


def mcp_lines(path: Path) -> list[Counter[str]]:
    return [mcp(row["msg"] for row in rows(path))]


def mcp(messages: Iterable[dict[str, Any]]) -> Counter[str]:
    """Ids begin again with each session."""
    asked: set[Any] = set()
    found: Counter[str] = Counter()
    for message in messages:
        if message.get("method") == "initialize":
            asked = set()
        elif message.get("method") == "tools/call":
            asked.add(message["id"])
            found["calls"] += 1
        elif message.get("id") in asked and "method" not in message:
            found["results"] += 1
            found["errors"] += "error" in message or message["result"].get("isError", False)
    return found


def mcp_cassette(path: Path) -> list[Counter[str]]:
    messages: list[dict[str, Any]] = []
    for interaction in yaml.safe_load(path.read_text())["interactions"]:
        sent = interaction["request"].get("parsed_body") or {}
        if "jsonrpc" in sent:
            messages.append(sent)
            text = interaction["response"]["body"]["string"]
            messages += [json.loads(line[5:]) for line in text.split("\n") if line.startswith("data:")]
    return [mcp(messages)]


def inspect_log(path: Path) -> list[Counter[str]]:
    """Tool events of each sample; a zip is opened here only to count."""
    if path.suffix == ".json":
        samples = json.loads(path.read_text())["samples"]
    else:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            samples = sorted(
                (json.loads(archive.read(name)) for name in names),
                key=lambda sample: (sample["epoch"], str(sample["id"])),
            )
    tools = [[event for event in sample["events"] if event["event"] == "tool"] for sample in samples]
    return [
        Counter(calls=len(each), results=len(each), errors=sum(event.get("error") is not None for event in each))
        for each in tools
    ]


def atif(path: Path) -> list[Counter[str]]:
    return [atif_steps(each) for each in ([json.loads(path.read_text())] if path.suffix == ".json" else rows(path))]


def atif_steps(trajectory: dict[str, Any]) -> Counter[str]:
    """An observation answers a call that it names, or the calls of its step; without either it is what the text led to."""
    found: Counter[str] = Counter()
    for step in trajectory["steps"]:
        if not step.get("is_copied_context"):
            calls, observed = step.get("tool_calls") or [], (step.get("observation") or {}).get("results", [])
            found["calls"] += len(calls)
            found["results"] += sum(bool(calls) or each.get("source_call_id") is not None for each in observed)
    for each in trajectory.get("subagent_trajectories") or []:
        found += atif_steps(each)
    return found


def swe_agent(path: Path) -> list[Counter[str]]:
    run = json.loads(path.read_text())
    if "trajectory" in run:
        return [Counter(calls=len(run["trajectory"]), results=sum("observation" in step for step in run["trajectory"]))]
    roles = Counter(each["role"] for each in run["history"])
    return [Counter(calls=roles["assistant"], results=roles["tool"])]


def mini_swe_agent(path: Path) -> list[Counter[str]]:
    messages = json.loads(path.read_text())
    codes = [
        found.group(1)
        for each in messages
        if each["role"] == "user" and (found := re.match(r"<returncode>(-?\d+)</returncode>", each["content"]))
    ]
    asked = sum(each["content"].count("```mswea_bash_command") for each in messages if each["role"] == "assistant")
    return [Counter(calls=asked, results=len(codes) + 1, errors=sum(code != "0" for code in codes))]  # + the submission


def openhands(path: Path) -> list[Counter[str]]:
    found = []
    for line in rows(path):
        events = line["history"]
        asked = {
            event["id"]
            for event in events
            if "tool_call_metadata" in event and event.get("action") not in (None, "finish")
        }
        told = [event for event in events if event.get("cause") in asked]
        codes = [(event.get("extras") or {}).get("metadata", {}).get("exit_code", 0) for event in told]
        failed = sum(code != 0 or event["observation"] == "error" for code, event in zip(codes, told, strict=True))
        found.append(Counter(calls=len(asked), results=len(told), errors=failed))
    return found


def gemini(path: Path) -> list[Counter[str]]:
    records = rows(path) if path.suffix == ".jsonl" else json.loads(path.read_text())["messages"]
    statuses = Counter(call["status"] for message in records for call in message.get("toolCalls", []))
    return [Counter(calls=statuses.total(), results=statuses["success"] + statuses["error"], errors=statuses["error"])]
