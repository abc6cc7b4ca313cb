"""GT1503 malformed-arguments: arguments that are no JSON.

What it finds: a call by the model whose arguments did not parse as JSON.
Why it matters: the tool cannot have been called as it was meant; often the response of the model was cut off.
Example: {"path": "notes.txt", "text": "… and then nothing.
Not a finding: arguments that parse but break the schema (GT1501); a call without arguments.
Options: none.
Needs: arguments as they were sent.
References: providers give the arguments of a call as text; a response that hits its token limit ends in the middle of
    it.
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import MISSING, Subject

CODE = "GT1503"
CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"})
"""Reasons of providers for a response that was cut off."""


@rule(CODE, "malformed-arguments", severity="error", needs={Needs.ARGUMENTS})
def malformed_arguments(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per call whose arguments are no JSON."""
    reasons = {turn.turn: turn.finish_reason for _, turn in subject.turns if turn.turn is not None}
    for ask in subject.asks:
        if subject.arguments(ask.attempt) is not MISSING:
            continue
        text = subject.call(ask.attempt).args_raw or ""
        if not text.strip():
            continue
        is_cut = reasons.get(ask.turn) in CUT_OFF
        why = "; the response was cut off" if is_cut else ""
        yield finding(
            CODE, f"{ask.label}: its arguments are no JSON ({len(text)} characters){why}", lines=[ask.line],
            labels=[ask.label], tool_name=ask.tool_name, pointer="#raw",
        )  # fmt: skip
