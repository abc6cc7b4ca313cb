"""The list of every file of real traces: what it holds, or why it is refused, decided and counted by plain code.

Imports nothing of the package: the importers are held to this list (see test_files.py). A file that no rule knows, or more
than one does, is an error, so that whoever adds a file decides what it holds.
"""

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from tests.corpus.counting import messages, sessions, spans

LIST = Path(__file__).parents[1] / "files.yaml"
HEAD = """\
# Every file of the corpus, by its path below it: how many runs it holds, and how many calls, results and errors in them all;
# or, with `refused`, why there is nothing to import. Written by `python -m tests.corpus.counting FOLDER`, which shares no
# code with the importers. They must agree with each line; a refusal that is not on this list is a failure.
#
# A call is what was asked of a tool, by the model, by the simulated user or by the harness, also where no answer stands in
# the file. A result is an answer to a call, or one whose call is not in the file. History that a later request or span sends
# again counts once. An error is a result of which the format itself says that it failed; the text of a result says nothing:
#
#   otel-genai, openinference, trail   status 2, ERROR or Error (unset is no error), or a tool message of LangChain with the
#                                      status error; a span of a tool that ended is a call and its result
#   openai-chat, tau2-bench            `error` true on the tool's message
#   tau-bench, toolathlon              neither has a flag
#   openai-responses                   `error` of an mcp_call
#   anthropic-messages, anthropic-managed-agents, claude-code, claude-stream    `is_error`, or a content of a type …_error
#   vcr, har                           as the API that they recorded
#   langchain                          `status` error
#   pydantic-ai                        outcome retried, or a retry-prompt that names a tool
#   openai-agents                      `error` of the span; openai-agents-state has no flag
#   langsmith                          `error` of the tool's run
#   langfuse                           level ERROR
#   codex, codex-exec                  an exit code other than 0, an MCP call that ended in Err or isError, and a command that
#                                      the sandbox or the user kept from running
#   mcp                                a JSON-RPC error, or isError
#   inspect                            `error` of the tool's event
#   atif, swe-agent                    neither has a flag
#   mini-swe-agent, openhands          an exit code other than 0, an observation of the type error that answers a call
#   gemini-cli                         status error
"""


@dataclass(frozen=True, slots=True)
class Runs:
    """Files that hold runs. pattern: of the path below the corpus; format: what they are; count: one Counter a run."""

    pattern: str
    format: str
    count: Callable[[Path], list[Counter[str]]]


@dataclass(frozen=True, slots=True)
class Refused:
    """Files that nothing is imported from. reason: why; holds_none: whether the content bears the reason out."""

    pattern: str
    reason: str
    holds_none: Callable[[Path], bool]


def is_prose(path: Path) -> bool:
    return not path.read_text().lstrip().startswith(("{", "["))


def is_python(path: Path) -> bool:
    return bool(ast.parse(path.read_text()).body)


def is_schema(path: Path) -> bool:
    return "type" in json.loads(path.read_text()) and not {"messages", "spans"} & json.loads(path.read_text()).keys()


def is_labels(path: Path) -> bool:
    return all("redundant_step_idx" in each and "messages" not in each for each in json.loads(path.read_text()))


def is_catalogue(path: Path) -> bool:
    return all(
        (path.parent / each["file"]).exists() and "messages" not in each for each in json.loads(path.read_text())
    )


def is_other_traffic(path: Path) -> bool:
    entries = json.loads(path.read_text())["log"]["entries"]
    return not any(
        re.search(r'"(messages|input|contents)"', each["request"].get("postData", {}).get("text", ""))
        for each in entries
    )


def is_script_of_responses(path: Path) -> bool:
    return all(json.loads(line).keys() == {"method", "response"} for line in path.read_text().split("\n") if line)


def begins_with_damage(path: Path) -> bool:
    try:
        json.loads(path.read_text().split("\n")[0])
    except ValueError:
        return True
    return False


def is_snapshot(path: Path) -> bool:
    return path.read_text().startswith("// Vitest Snapshot") and is_prose(path)


RULES: tuple[Runs | Refused, ...] = (
    Refused("*.md", "no runs: notes", is_prose),
    Refused("*/LICENSE", "no runs: licence", is_prose),
    Refused("*.py", "no runs: code", is_python),
    Refused("formats/otlp_genai/schemas/*.json", "no runs: schema", is_schema),
    Refused("rb_style_injected/annotation.json", "no runs: labels", is_labels),
    Refused("redundancybench/airline_preannotation_*.json", "no runs: labels", is_labels),
    Refused("toolathlon/MANIFEST.json", "no runs: catalogue", is_catalogue),
    Refused("formats/har_generic/*.har", "no runs: traffic of web pages", is_other_traffic),
    Refused(
        "formats/gemini_cli/agent-resume-session.json",
        "no runs: scripted responses of a model",
        is_script_of_responses,
    ),
    Refused("formats/codex/letta_cleanup_input.jsonl", "damaged: its first line is no JSON", begins_with_damage),
    Refused(
        "formats/vercel_ai_sdk/*.snap",
        "runs inside the snapshots of a test suite, in a syntax of their own",
        is_snapshot,
    ),
    Runs("tau_bench/*.json", "tau-bench", messages.tau_bench),
    Runs("toolathlon/*_*.json", "toolathlon", messages.toolathlon),
    Runs("rb_style_injected/traces.json", "openai-chat", messages.conversations),
    Runs("redundancybench/airline_5sims_unlabelled.json", "tau2-bench", messages.simulations),
    Runs("formats/tau2_bench/*.jsonl", "tau2-bench", messages.rows),
    Runs("formats/openai_agents_trace/to_input_list.json", "openai-responses", messages.input_list),
    Runs("formats/anthropic_messages/*.json", "anthropic-messages", messages.sdk_snapshot),
    Runs("formats/langchain_messages/*.json", "langchain", messages.langchain),
    Runs("formats/pydantic_ai/*.json", "pydantic-ai", messages.pydantic_ai),
    Runs("formats/openai_chat/*.yaml", "vcr", messages.cassette),
    Runs("formats/openai_responses/*.yaml", "vcr", messages.cassette),
    Runs("formats/anthropic_messages/*.yaml", "vcr", messages.cassette),
    Runs("formats/mcp_http/*.yaml", "vcr", messages.cassette),
    Runs("formats/har_llm/*.har", "har", messages.har),
    Runs("formats/claude_code/*.jsonl", "claude-code", sessions.claude_session),
    Runs("formats/claude_code_edge/*.jsonl", "claude-code", sessions.claude_session),
    Runs("formats/claude_code_stream_json/*.jsonl", "claude-stream", sessions.claude_stream),
    Runs("formats/claude_agent_sdk/*.json", "claude-stream", sessions.claude_stream),
    Runs("formats/anthropic_managed_agents/*.jsonl", "anthropic-managed-agents", sessions.managed_agent),
    Runs("formats/codex/rollout-*.jsonl", "codex", sessions.codex),
    Runs("formats/codex/*_legacy.jsonl", "codex", sessions.codex),
    Runs("formats/codex/letta_tool-calls_input.jsonl", "codex", sessions.codex),
    Runs("formats/codex/schema_survey_*.jsonl", "codex", sessions.codex),
    Runs("formats/codex_exec_json/*.jsonl", "codex-exec", sessions.codex_exec),
    Runs("formats/mcp_stdio/*.jsonl", "mcp", sessions.mcp_lines),
    Runs("formats/inspect_ai/*.json", "inspect", sessions.inspect_log),
    Runs("formats/inspect_ai/*.eval", "inspect", sessions.inspect_log),
    Runs("formats/atif/*.json*", "atif", sessions.atif),
    Runs("formats/swe_agent/*.traj", "swe-agent", sessions.swe_agent),
    Runs("tracelint_samples/*.traj", "swe-agent", sessions.swe_agent),
    Runs("formats/mini_swe_agent/*.json", "mini-swe-agent", sessions.mini_swe_agent),
    Runs("formats/openhands/*.jsonl", "openhands", sessions.openhands),
    Runs("formats/gemini_cli/jsonl_*.jsonl", "gemini-cli", sessions.gemini),
    Runs("formats/gemini_cli/[ls]*.json", "gemini-cli", sessions.gemini),
    Runs("formats/otlp_genai/*_*.json", "otel-genai", spans.otlp_genai),
    Runs("formats/otel_console/*.txt", "otel-genai", spans.console),
    Runs("formats/openinference_otlp/*.jsonl", "openinference", spans.openinference_otlp),
    Runs("tracelint_samples/*_spans.json", "openinference", spans.flat_openinference),
    Runs("tracelint_samples/*_trace.json", "openinference", spans.flat_openinference),
    Runs("formats/trail/*.parquet", "trail", spans.trail),
    Runs("formats/openai_agents_trace/*.jsonl", "openai-agents", spans.agents_sdk),
    Runs("formats/openai_agents_run_state/*.json", "openai-agents-state", spans.run_state),
    Runs("formats/langsmith/*.jsonl", "langsmith", spans.langsmith),
    Runs("tracelint_samples/langsmith_*.json", "langsmith", spans.langsmith),
    Runs("formats/langsmith/*.json", "langsmith", spans.langsmith_log),
    Runs("formats/langfuse/*.json", "langfuse", spans.langfuse),
)


def rule_of(name: str) -> Runs | Refused:
    """The one rule for a path below the corpus. Raises: LookupError where there is none, or more than one."""
    matching = [rule for rule in RULES if fnmatchcase(name, rule.pattern)]
    if len(matching) != 1:
        raise LookupError(f"{name}: {len(matching)} rules say what it holds; write one in {Path(__file__).name}")
    return matching[0]


def files(corpus: Path) -> Iterator[str]:
    """Paths below the corpus of all its files, sorted."""
    yield from sorted(path.relative_to(corpus).as_posix() for path in corpus.rglob("*") if path.is_file())


def line_of(corpus: Path, name: str) -> dict[str, Any]:
    """What the list says of one file. Raises: LookupError as rule_of, ValueError where the content contradicts the rule."""
    path, rule = corpus / name, rule_of(name)
    line: dict[str, Any] = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    if isinstance(rule, Refused):
        if not rule.holds_none(path):
            raise ValueError(f"{name} is not what its rule says: {rule.reason}")
        return line | {"refused": rule.reason}
    runs = rule.count(path)
    total = sum(runs, Counter[str]())
    return (
        line
        | {"format": rule.format, "runs": len(runs)}
        | {word: total[word] for word in ("calls", "results", "errors")}
    )


def read_list() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(LIST.read_text())
    return found


def write_list(corpus: Path) -> str:
    """The text of the list: its head, and one line a file."""
    lines = [
        f"{json.dumps(name)}: {yaml.safe_dump(line_of(corpus, name), default_flow_style=True, sort_keys=False, width=1000)}"
        for name in files(corpus)
    ]
    return HEAD + "\n" + "".join(lines)
