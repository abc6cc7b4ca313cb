"""GT1601 truncated-pagination: there was a next page, and nobody asked for it.

What it finds: a successful result with a cursor that no later call of that tool used, in a run that does not end as
    `partial`.
Why it matters: the answer is made from the first page and reads as if it were from all.
Example: list_orders gives 50 orders and next_cursor "c2"; the next call is the answer.
Not a finding: an empty or null cursor; `has_more: false` beside it; a run that ends as `partial`; a cursor whose own
    page was read another way is still a finding: say so with a suppression.
Options: names: keys that hold a cursor, where the tool declares none.
Needs: arguments, results. `tools.TOOL.cursor` of the profile is the cursor's name or JSON Pointer; without it
    well-known names are looked for in the result and one level below.
References: MCP 2025-06-18, pagination (`nextCursor`); Google AIP-158 (`next_page_token`); Slack (`next_cursor`).
"""

from collections.abc import Iterator
from typing import Any

from goldentrace.model.finding import Finding, Needs
from goldentrace.model.operation import Attempt, Operation
from goldentrace.normalize.marks import Marks
from goldentrace.rules.arguments import value_at
from goldentrace.rules.registry import Unchecked, finding, left_out, rule
from goldentrace.rules.schemas import structured
from goldentrace.rules.subject import MISSING, Subject

CODE = "GT1601"
NAMES = (
    "next_cursor",
    "nextCursor",
    "next_page_token",
    "nextPageToken",
    "next_token",
    "NextToken",
    "continuation_token",
)
MORE = ("has_more", "hasMore", "has_next", "hasNextPage", "is_truncated", "IsTruncated")


@rule(CODE, "truncated-pagination", severity="warning", needs={Needs.ARGUMENTS, Needs.RESULTS})
def truncated_pagination(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per cursor that was not followed."""
    if subject.normal.outcome == "partial":
        return
    names = tuple(subject.option(CODE, "names", list(NAMES)))
    marks = Marks(names)
    waiting: dict[tuple[str, str], tuple[Operation, Attempt]] = {}
    of_tool: dict[str, set[str]] = {}
    for operation, attempt in subject.attempts:
        cursors = of_tool.get(operation.tool_name)
        if cursors:
            for value in _scalars(subject.arguments(attempt)):
                if value in cursors:
                    cursors.discard(value)
                    waiting.pop((operation.tool_name, value), None)
        if attempt.status != "ok":
            continue
        cursor = _cursor(subject, operation, attempt, names, marks)
        if cursor is not None:
            waiting[operation.tool_name, cursor] = (operation, attempt)
            of_tool.setdefault(operation.tool_name, set()).add(cursor)
    for operation, attempt in waiting.values():
        is_declared = subject.tool(operation.tool_name).cursor is not None
        how = "" if is_declared else " (its name is a well-known one; the tool declares no `cursor`)"
        yield finding(
            CODE, f"{operation.label}: its result has a next page that no call asked for{how}",
            lines=[attempt.result_line], labels=[operation.label], tool_name=operation.tool_name,
        )  # fmt: skip
    yield from left_out(subject, (attempt for _, attempt in subject.attempts))


def _cursor(
    subject: Subject, operation: Operation, attempt: Attempt, names: tuple[str, ...], marks: Marks
) -> str | None:
    declared = subject.tool(operation.tool_name).cursor
    result = subject.result(attempt)
    if result is None or (declared is None and not marks.found_in(bytes(result.result))):
        return None
    value = subject.result_value(attempt)
    _, value = structured(value) if value is not MISSING else (False, None)
    if not isinstance(value, dict):
        return None
    if declared is not None:
        return _shown(value_at(value, declared))
    for holder in (value, *(item for item in value.values() if isinstance(item, dict))):
        if any(holder.get(name) is False for name in MORE) or any(value.get(name) is False for name in MORE):
            continue
        for name in names:
            found = _shown(holder.get(name))
            if found is not None:
                return found
    return None


def _shown(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and value not in ("", 0) else None


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _scalars(item)
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    elif isinstance(value, str | int):
        yield str(value)
