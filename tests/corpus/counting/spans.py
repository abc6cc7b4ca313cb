"""Counts of calls, results and errors in files of spans, by plain code that shares nothing with the importers.

Only the standard library and a parquet reader. A call is a span of a tool, and a call in a response that no span of a tool
ran. Each function walks one format as its reference describes it, and returns one Counter a run, in the order of the file.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def counts(calls: int, results: int, errors: int) -> Counter[str]:
    return Counter(calls=calls, results=results, errors=errors)


def plain(value: dict[str, Any]) -> Any:
    """The value of an OTLP attribute; none of those that are counted is a list or an object."""
    return next(iter(value.values()), None)


def otlp_spans(path: Path) -> Iterator[tuple[str, str, dict[str, Any], int]]:
    """(trace, name, attributes, status code)"""
    text = path.read_text()
    documents = (
        [json.loads(line) for line in text.split("\n") if line] if path.suffix == ".jsonl" else [json.loads(text)]
    )
    for document in documents:
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    attributes = {each["key"]: plain(each["value"]) for each in span["attributes"]}
                    yield span["traceId"], span["name"], attributes, span.get("status", {}).get("code", 0)


def otlp_genai(path: Path) -> list[Counter[str]]:
    """Per trace: spans that run a tool; in these files every one has its result, and every call has a span."""
    found: dict[str, Counter[str]] = {}
    for trace, name, attributes, status in otlp_spans(path):
        of_trace = found.setdefault(trace, Counter())
        if name.startswith("execute_tool ") or (name == "running tool" and "tool_arguments" in attributes):
            of_trace.update(counts(1, 1, status == 2))
    return list(found.values())


def console(path: Path) -> list[Counter[str]]:
    """The dump is JSON objects one after another; its lines of names and of statuses are enough to count."""
    text = path.read_text()
    tools = len(re.findall(r'^    "name": "execute_tool ', text, re.MULTILINE))
    errors = len(re.findall(r'^        "status_code": "ERROR"', text, re.MULTILINE))
    return [counts(tools, tools, errors)]


def openinference_otlp(path: Path) -> list[Counter[str]]:
    tools = [span for span in otlp_spans(path) if span[2].get("openinference.span.kind") == "TOOL"]
    return [counts(len(tools), len(tools), sum(status == 2 for *_, status in tools))]


def flat_openinference(path: Path) -> list[Counter[str]]:
    """A list of spans; LangChain's tool message states failure in its status."""
    spans = json.loads(path.read_text())
    tools = [
        span for span in spans
        if (span.get("attributes") or {}).get("openinference.span.kind") == "TOOL" or span.get("span_kind") == "TOOL"
    ]  # fmt: skip
    outputs = [
        str((span.get("attributes") or span).get("output.value", span.get("attributes.output.value"))) for span in tools
    ]
    failed = sum(
        span["status_code"] == "ERROR" or '"status": "error"' in output
        for span, output in zip(tools, outputs, strict=True)
    )
    return [counts(len(tools), len(tools), failed)]


def agents_sdk(path: Path) -> list[Counter[str]]:
    spans = [json.loads(line) for line in path.read_text().split("\n") if line]
    tools = [span for span in spans if span.get("span_data", {}).get("type") in ("function", "handoff")]
    return [counts(len(tools), len(tools), sum(span["error"] is not None for span in tools))]


def run_state(path: Path) -> list[Counter[str]]:
    kinds = Counter(item["type"] for item in json.loads(path.read_text())["generated_items"])
    return [counts(kinds["tool_call_item"], kinds["tool_call_output_item"], 0)]


def runs_within(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield run
    for child in run.get("child_runs") or []:
        yield from runs_within(child)


def langsmith(path: Path) -> list[Counter[str]]:
    """Exports only: one trace in each of these files."""
    text = path.read_text()
    runs = (
        [json.loads(line) for line in text.split("\n") if line]
        if path.suffix == ".jsonl"
        else list(runs_within(json.loads(text)))
    )
    tools = [run for run in runs if run.get("run_type") == "tool"]
    return [counts(len(tools), len(tools), sum(bool(run.get("error")) for run in tools))]


def langsmith_log(path: Path) -> list[Counter[str]]:
    """The three logs hold one model call without tools each."""
    assert '"tool_calls"' not in path.read_text()
    assert len(json.loads(path.read_text())["post"]) == 1
    return [Counter()]


def is_tool_message(output: Any) -> bool:
    return isinstance(output, str) and output.startswith('{"content"') and '"tool_call_id"' in output


def langfuse(path: Path) -> list[Counter[str]]:
    """Observations of the type TOOL, and those spans of an older SDK whose output is a tool message."""
    observations = json.loads(path.read_text())["observations"]
    tools = [
        each
        for each in observations
        if each["type"] == "TOOL" or (each["type"] == "SPAN" and is_tool_message(each["output"]))
    ]
    return [counts(len(tools), len(tools), sum(each["level"] == "ERROR" for each in tools))]


ASKED_NAME = re.compile(r"llm\.output_messages\.\d+\.message\.tool_calls\.\d+\.tool_call\.function\.name")


def siblings(spans: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    yield spans
    for span in spans:
        yield from siblings(span["child_spans"])


def trail(path: Path) -> list[Counter[str]]:
    """Per row that holds a trace, and per step in it: a tool's calls are those its response asks for, or its spans, if more."""
    from pyarrow import parquet

    found = []
    for text in parquet.read_table(path)["trace"].to_pylist():
        if not text.startswith("{"):
            continue
        of_trace: Counter[str] = Counter()
        for step in siblings(json.loads(text)["spans"]):
            given = [(span["span_attributes"], span["status_code"]) for span in step]
            asked = Counter(value for each, _ in given for key, value in each.items() if ASKED_NAME.fullmatch(key))
            ran = [
                (each["tool.name"], status) for each, status in given if each.get("openinference.span.kind") == "TOOL"
            ]
            calls = asked | Counter(name for name, _ in ran)
            of_trace += counts(calls.total(), len(ran), sum(status == "Error" for _, status in ran))
        found.append(of_trace)
    return found


def vercel_blocks(path: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """(name, spans) of a Vitest snapshot, whose strings hold quotes that are not escaped and whose lists end in commas."""
    found = []
    for name, block in re.findall(r"exports\[`(.*?)`\] = `\n(.*?)\n`;\n", path.read_text(), re.DOTALL):
        lines = []
        for line in block.split("\n"):
            pair = re.fullmatch(r'(\s*)"([^"]+)": "(.*)",', line)
            item = re.fullmatch(r'(\s*)"(.*)",', line)
            if pair:
                lines.append(f"{pair[1]}{json.dumps(pair[2])}: {json.dumps(pair[3])},")
            elif item and not re.fullmatch(r'\s*"[^"]+": .*', line):
                lines.append(f"{item[1]}{json.dumps(item[2])},")
            else:
                lines.append(line)
        text = re.sub(r",(\s*[\]}])", r"\1", "\n".join(lines))
        try:
            found.append((name, json.loads(text)))
        except ValueError:
            continue
    return found
