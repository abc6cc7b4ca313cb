"""GT1602 oversized-result: a result that takes more of the context than it should.

What it finds: a result of more than `max_bytes` bytes (100,000, about 25,000 tokens at four bytes each).
Why it matters: it stands in every later request; it is paid for each time, and pushes out what matters.
Example: read_file of a 2 MB log.
Not a finding: a result whose size is not recorded; many small results.
Options: max_bytes (100000).
Needs: results or their sizes (`result_bytes`).
References: Claude Code limits the output of an MCP tool to 25,000 tokens by default (MAX_MCP_OUTPUT_TOKENS).
"""

from collections.abc import Iterator

from goldentrace.model.finding import Finding
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1602"
MAX_BYTES = 100_000
BYTES_PER_TOKEN = 4


@rule(CODE, "oversized-result", severity="warning")
def oversized_result(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per result."""
    allowed = int(subject.option(CODE, "max_bytes", MAX_BYTES))
    unknown = 0
    for operation, attempt in subject.attempts:
        result = subject.result(attempt)
        if result is None:
            continue
        size = result.result_bytes if result.result_bytes is not None else len(bytes(result.result))
        if not size and (result.result_hash is not None or result.status == "ok"):
            unknown += 1
        if size > allowed:
            yield finding(
                CODE, f"{operation.label}: a result of {size:,} bytes, about {size // BYTES_PER_TOKEN:,} tokens",
                lines=[attempt.result_line], labels=[operation.label], tool_name=operation.tool_name, expected=allowed,
                actual=size,
            )  # fmt: skip
    if unknown:
        yield Unchecked(f"the size of {unknown} results is not recorded")
