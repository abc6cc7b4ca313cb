"""Counts of calls, results and errors in raw files by plain code that shares nothing with the importers.

Only the standard library and a YAML parser: each function walks one format as its reference describes it.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml


def chat(messages: Iterable[dict[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for message in messages:
        found["calls"] += len(message.get("tool_calls") or [])
        if message["role"] == "tool":
            found["results"] += 1
            found["errors"] += message.get("error") is True
    return found


def tau_bench(path: Path) -> list[Counter[str]]:
    return [chat(run["traj"]) for run in json.loads(path.read_text())]


def toolathlon(path: Path) -> list[Counter[str]]:
    return [chat(json.loads(path.read_text())["messages"])]


def simulations(path: Path) -> list[Counter[str]]:
    return [chat(each["messages"]) for each in json.loads(path.read_text())["simulations"]]


def conversations(path: Path) -> list[Counter[str]]:
    return [chat(each["messages"]) for each in json.loads(path.read_text())]


def rows(path: Path) -> list[Counter[str]]:
    return [chat(json.loads(line)["messages"]) for line in path.read_text().splitlines()]


def responses_items(items: Iterable[dict[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for item in items:
        kind = item.get("type")
        found["calls"] += kind in ("function_call", "mcp_call")
        found["results"] += kind in ("function_call_output", "mcp_call")
    return found


def input_list(path: Path) -> list[Counter[str]]:
    return [responses_items(json.loads(path.read_text()))]


def anthropic_blocks(contents: Iterable[Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    for content in contents:
        for block in content if isinstance(content, list) else []:
            found["calls"] += block["type"] in ("tool_use", "server_tool_use", "mcp_tool_use")
            found["results"] += block["type"].endswith("tool_result")
            found["errors"] += block.get("is_error") is True
    return found


def langchain(path: Path) -> list[Counter[str]]:
    text = path.read_text()
    calls = re.findall(r'"type":\s*"tool_call"', text)
    statuses = re.findall(r'"status":\s*"(success|error)"', text)
    return [Counter(calls=len(calls), results=len(statuses), errors=statuses.count("error"))]


def pydantic_ai(path: Path) -> list[Counter[str]]:
    parts = [part for message in json.loads(path.read_text()) for part in message["parts"]]
    kinds = Counter(part["part_kind"] for part in parts)
    retried = sum(part.get("outcome") == "retried" for part in parts)
    asked_again = sum(part["part_kind"] == "retry-prompt" and bool(part.get("tool_name")) for part in parts)
    return [Counter(calls=kinds["tool-call"], results=kinds["tool-return"] + asked_again, errors=retried + asked_again)]


def sdk_snapshot(path: Path) -> list[Counter[str]]:
    exchanges = json.loads(path.read_text())
    last = exchanges[-1]
    return [anthropic_blocks([*(each["content"] for each in last["request"]["body"]["messages"]), last["response"]["body"]["content"]])]


def body(message: dict[str, Any]) -> Any:
    if "parsed_body" in message:
        return message["parsed_body"]
    raw = message["body"]["string"] if isinstance(message["body"], dict) else message["body"]
    raw = gzip.decompress(raw).decode() if isinstance(raw, bytes) else raw
    return json.loads(raw) if raw.lstrip().startswith("{") else raw


def cassette(path: Path) -> list[Counter[str]]:
    """The last request holds the whole history; with the last response that is the run."""
    recorded = [
        each for each in yaml.safe_load(path.read_text())["interactions"]
        if re.search(r"/(chat/completions|responses|messages)(\?|$)", each["request"]["uri"])
    ]  # fmt: skip
    sent, got = body(recorded[-1]["request"]), body(recorded[-1]["response"])
    if isinstance(got, str):  # a stream of a single exchange
        blocks = re.findall(r'"content_block":\{"type":"(\w+)"', got)
        items = re.findall(r'"type":"response.output_item.done".*?"type":"(\w+)"', got)
        return [Counter(
            calls=sum(kind.endswith("tool_use") for kind in blocks) + items.count("mcp_call"),
            results=sum(kind.endswith("tool_result") for kind in blocks) + items.count("mcp_call"),
        )]  # fmt: skip
    if "choices" in got:
        return [chat([*sent["messages"], got["choices"][0]["message"]])]
    if "output" in got:
        return [responses_items([*(sent["input"] if isinstance(sent["input"], list) else []), *got["output"]])]
    return [anthropic_blocks([*(each["content"] for each in sent["messages"]), got["content"]])]


def snapshot_blocks(path: Path) -> list[tuple[str, Any]]:
    """(name, value) of those values in a Vitest snapshot that are JSON but for dates, `undefined` and trailing commas."""
    blocks = re.findall(r"exports\[`(.*?)`\] = `\n?(.*?)\n?`;\n", path.read_text(), re.DOTALL)
    found = []
    for name, text in blocks:
        quoted = re.sub(r": (\d{4}-\d\d-\d\dT[\d:.]+Z)", r': "\1"', re.sub(r": undefined\b", ": null", text))
        plain = re.sub(r",(\s*[\]}])", r"\1", quoted)
        try:
            found.append((name, json.loads(plain)))
        except ValueError:
            continue
    return found
