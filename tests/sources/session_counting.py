"""Counts of calls, results and errors in raw files of agents' sessions, by plain code that shares nothing with the importers.

Only the standard library and a YAML parser. A call that was refused counts as an error, one without an answer as no result.
"""

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml


def rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def blocks(contents: Iterable[Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    for content in contents:
        for block in content if isinstance(content, list) else []:
            found["calls"] += block["type"] == "tool_use"
            found["results"] += block["type"] == "tool_result"
            found["errors"] += block["type"] == "tool_result" and block.get("is_error") is True
    return found


def claude_file(path: Path) -> Counter[str]:
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
    named = {row["toolUseResult"]["agentId"] for row in rows(path) if isinstance(row.get("toolUseResult"), dict) and "agentId" in row["toolUseResult"]}
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
    return [Counter(calls=sum(kind.endswith("tool_use") for kind in kinds), results=sum(kind.endswith("tool_result") for kind in kinds), errors=failed)]


def codex(path: Path) -> list[Counter[str]]:
    found: Counter[str] = Counter()
    for row in rows(path):
        item = row["payload"] if row.get("type") == "response_item" else row
        kind = item.get("type") or ""
        found["calls"] += kind.endswith("_call")
        found["results"] += kind.endswith("_output")
        if kind == "function_call_output":
            text = item["output"]
            code = re.search(r'"exit_code":(-?\d+),"duration_seconds"', text) if text.startswith('{"output"') else None
            refused = text.startswith(("failed in sandbox", "patch rejected by user"))
            found["errors"] += refused or (code is not None and code.group(1) != "0")
    return [found]


def codex_exec(path: Path) -> list[Counter[str]]:
    items = [row["item"] for row in rows(path) if row["type"] == "item.completed" and row["item"]["type"] in ("command_execution", "file_change", "mcp_tool_call")]
    return [Counter(calls=len(items), results=len(items), errors=sum(item.get("exit_code", 0) != 0 for item in items))]


def mcp_lines(path: Path) -> list[Counter[str]]:
    return [mcp(row["msg"] for row in rows(path))]


def mcp(messages: Iterable[dict[str, Any]]) -> Counter[str]:
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
            messages += [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]
    return [mcp(messages)]


def inspect_log(path: Path) -> list[Counter[str]]:
    """Tool events of each sample; a zip is opened here only to count."""
    if path.suffix == ".json":
        samples = json.loads(path.read_text())["samples"]
    else:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            samples = [json.loads(archive.read(name)) for name in names]
    tools = [[event for event in sample["events"] if event["event"] == "tool"] for sample in samples]
    return sorted((Counter(calls=len(each), results=len(each), errors=sum(event.get("error") is not None for event in each)) for each in tools), key=repr)


def atif(path: Path) -> list[Counter[str]]:
    found = []
    for trajectory in [json.loads(path.read_text())] if path.suffix == ".json" else rows(path):
        own = [step for step in trajectory["steps"] if not step.get("is_copied_context") and step.get("tool_calls")]
        answered = sum(len((step.get("observation") or {}).get("results", [])) for step in own)
        found.append(Counter(calls=sum(len(step["tool_calls"]) for step in own), results=answered))
    return found


def swe_agent(path: Path) -> list[Counter[str]]:
    run = json.loads(path.read_text())
    if "trajectory" in run:
        return [Counter(calls=len(run["trajectory"]), results=sum("observation" in step for step in run["trajectory"]))]
    roles = Counter(each["role"] for each in run["history"])
    return [Counter(calls=roles["assistant"], results=roles["tool"])]


def mini_swe_agent(path: Path) -> list[Counter[str]]:
    messages = json.loads(path.read_text())
    codes = [found.group(1) for each in messages if each["role"] == "user" and (found := re.match(r"<returncode>(-?\d+)</returncode>", each["content"]))]
    asked = sum(each["content"].count("```mswea_bash_command") for each in messages if each["role"] == "assistant")
    return [Counter(calls=asked, results=len(codes) + 1, errors=sum(code != "0" for code in codes))]  # + the submission


def openhands(path: Path) -> list[Counter[str]]:
    found = []
    for line in rows(path):
        events = line["history"]
        asked = {event["id"] for event in events if "tool_call_metadata" in event and event.get("action") not in (None, "finish")}
        told = [event for event in events if event.get("cause") in asked]
        codes = [(event.get("extras") or {}).get("metadata", {}).get("exit_code", 0) for event in told]
        found.append(Counter(calls=len(asked), results=len(told), errors=sum(code != 0 for code in codes)))
    return found


def gemini(path: Path) -> list[Counter[str]]:
    records = rows(path) if path.suffix == ".jsonl" else json.loads(path.read_text())["messages"]
    calls = [call for message in records for call in message.get("toolCalls", [])]
    return [Counter(calls=len(calls), results=len(calls), errors=sum(call["status"] == "error" for call in calls))]


def har(path: Path) -> list[Counter[str]]:
    """The last request with its whole history, and the names of the calls in the stream of the last response."""
    entry = json.loads(path.read_text())["log"]["entries"][-1]
    sent, got = json.loads(entry["request"]["postData"]["text"]), entry["response"]["content"]["text"]
    found = blocks(each["content"] for each in sent.get("messages", []))
    found["calls"] += len(re.findall(r'"type": ?"tool_use"', got)) + len(re.findall(r'"function": ?\{"name"', got))
    return [found]
