"""Counts of calls, results and errors in files of message lists, by plain code that shares nothing with the importers.

Only the standard library and a YAML parser: each function walks one format as its reference describes it, and returns one
Counter a run, in the order of the file.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

BLOCK_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


def chat(messages: Iterable[dict[str, Any]]) -> Counter[str]:
    """Calls of the assistant and of the simulated user; the word of a tool message counts, its text does not."""
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
    return [chat(json.loads(line)["messages"]) for line in path.read_text().split("\n") if line]


def responses_items(items: Iterable[dict[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for item in items:
        kind = item.get("type")
        found["calls"] += kind in ("function_call", "mcp_call")
        found["results"] += kind in ("function_call_output", "mcp_call")
        found["errors"] += kind == "mcp_call" and item.get("error") is not None
    return found


def input_list(path: Path) -> list[Counter[str]]:
    return [responses_items(json.loads(path.read_text()))]


def blocks(contents: Iterable[Any]) -> Counter[str]:
    """Blocks of Anthropic's messages; a server's tool says that it failed in the type of its content."""
    found: Counter[str] = Counter()
    for content in contents:
        for block in content if isinstance(content, list) else []:
            found["calls"] += block["type"] in BLOCK_CALLS
            if block["type"].endswith("tool_result"):
                told = block.get("content")
                found["results"] += 1
                found["errors"] += block.get("is_error") is True or (
                    isinstance(told, dict) and told["type"].endswith("_error")
                )
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
    last = json.loads(path.read_text())[-1]
    return [
        blocks(
            [*(each["content"] for each in last["request"]["body"]["messages"]), last["response"]["body"]["content"]]
        )
    ]


def body(message: dict[str, Any]) -> Any:
    if "parsed_body" in message:
        return message["parsed_body"]
    raw = message["body"]["string"] if isinstance(message["body"], dict) else message["body"]
    raw = gzip.decompress(raw).decode() if isinstance(raw, bytes) else raw
    return json.loads(raw) if raw.lstrip().startswith("{") else raw


def cassette(path: Path) -> list[Counter[str]]:
    """The last request to a model holds the whole history; with the last response that is the run."""
    recorded = [
        each for each in yaml.safe_load(path.read_text())["interactions"]
        if re.search(r"/(chat/completions|responses|messages)(\?|$)", each["request"]["uri"])
    ]  # fmt: skip
    return [exchange(body(recorded[-1]["request"]), body(recorded[-1]["response"]))]


def har(path: Path) -> list[Counter[str]]:
    last = json.loads(path.read_text())["log"]["entries"][-1]
    return [exchange(json.loads(last["request"]["postData"]["text"]), last["response"]["content"]["text"])]


def exchange(sent: dict[str, Any], got: Any) -> Counter[str]:
    """What a request resends, and what its response adds; of a stream (text) the names of its items are enough to count."""
    has_chat = any(isinstance(each.get("content"), str) or each["role"] == "tool" for each in sent.get("messages", []))
    before = chat(sent["messages"]) if has_chat else blocks(each["content"] for each in sent.get("messages", []))
    before += responses_items(sent["input"]) if isinstance(sent.get("input"), list) else Counter()
    if isinstance(got, dict):
        if "choices" in got:
            return before + chat([got["choices"][0]["message"]])
        return before + (responses_items(got["output"]) if "output" in got else blocks([got["content"]]))
    started = re.findall(r'"content_block": ?\{"type": ?"(\w+)"', got)
    done = re.findall(r'"type": ?"response.output_item.done".*?"type": ?"(\w+)"', got)
    names = re.findall(r'"function": ?\{"name"', got)
    return before + Counter(
        calls=sum(kind in BLOCK_CALLS for kind in started)
        + done.count("mcp_call")
        + done.count("function_call")
        + len(names),
        results=sum(kind.endswith("tool_result") for kind in started) + done.count("mcp_call"),
    )


def snapshot_blocks(path: Path) -> list[tuple[str, Any]]:
    """(name, value) of those values in a Vitest snapshot that are JSON but for dates, `undefined` and trailing commas."""
    named = re.findall(r"exports\[`(.*?)`\] = `\n?(.*?)\n?`;\n", path.read_text(), re.DOTALL)
    found = []
    for name, text in named:
        quoted = re.sub(r": (\d{4}-\d\d-\d\dT[\d:.]+Z)", r': "\1"', re.sub(r": undefined\b", ": null", text))
        plain = re.sub(r",(\s*[\]}])", r"\1", quoted)
        try:
            found.append((name, json.loads(plain)))
        except ValueError:
            continue
    return found
