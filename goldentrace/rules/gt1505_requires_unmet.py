"""GT1505 requires-unmet: a call without the call that has to come before it.

What it finds: a call of a tool whose `requires` names a tool of which no successful call had ended by then, or none
    with the same values in the arguments that `same` lists.
Why it matters: the order of calls is policy: no refund without a look at the order, no delete without a backup.
Example: create_refund(order_id=7) without get_order(order_id=7) before it.
Not a finding: the required call in the same batch counts only if it ended before; a retry by the harness.
Options: none; `tools.TOOL.requires` of the profile is a list of tool names or of {tool: NAME, same: [ARGUMENT …]},
    where an argument is a name or a JSON Pointer.
Needs: arguments, `requires` in the profile; status of results.
References: preconditions between tools are declared; nothing is guessed from names.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from goldentrace.codec.canonical import canonical
from goldentrace.errors import ConfigError
from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.arguments import semantic, value_at
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1505"
Requirement = tuple[str, tuple[str, ...]]


@rule(CODE, "requires-unmet", severity="error", needs={Needs.ARGUMENTS, Needs.STATUS})
def requires_unmet(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per call and requirement that was not met."""
    required = {
        name: requirements(name, tool.requires) for name, tool in subject.profile.tools.items() if tool.requires
    }
    if not required:
        if subject.asks:
            yield Unchecked("no tool of the profile has `requires`")
        return
    wanted = {requirement for requirements in required.values() for requirement in requirements}
    met = _met(subject, wanted)
    for ask in subject.asks:
        for requirement in required.get(ask.tool_name, ()):
            tool_name, names = requirement
            place = (requirement, _values(subject, ask.attempt, names))
            ended = met.get(place)
            if ended is None or ended > ask.call_index:
                same = f" with the same {', '.join(names)}" if names else ""
                late = "" if ended is None else " yet"
                yield finding(
                    CODE, f"{ask.label}: {tool_name} had not succeeded{same}{late}", lines=[ask.line],
                    labels=[ask.label], tool_name=ask.tool_name, expected=tool_name,
                )  # fmt: skip


def requirements(name: str, given: list[Any]) -> list[Requirement]:
    """Return the tools that `requires` asks for, and the arguments that must be the same. Raises: ConfigError."""
    found: list[Requirement] = []
    for entry in given:
        if isinstance(entry, str):
            found.append((entry, ()))
            continue
        tool_name = entry.get("tool") if isinstance(entry, Mapping) else None
        names = entry.get("same", []) if isinstance(entry, Mapping) else None
        is_known = isinstance(entry, Mapping) and entry.keys() <= {"tool", "same"}
        if not is_known or not isinstance(tool_name, str) or not isinstance(names, list):
            raise ConfigError(
                f"tools.{name}.requires holds {entry!r}",
                next_step="write a tool's name, or {tool: NAME, same: [ARGUMENT]}",
            )
        found.append((tool_name, tuple(map(str, names))))
    return found


def _met(subject: Subject, wanted: set[Requirement]) -> dict[tuple[Requirement, bytes], int]:
    """Requirement and values -> index of the event with which it was first met."""
    found: dict[tuple[Requirement, bytes], int] = {}
    by_tool: dict[str, list[Requirement]] = {}
    for requirement in wanted:
        by_tool.setdefault(requirement[0], []).append(requirement)
    for operation, attempt in subject.attempts:
        if attempt.status != "ok" or attempt.result_index is None:
            continue
        for requirement in by_tool.get(operation.tool_name, ()):
            place = (requirement, _values(subject, attempt, requirement[1]))
            found[place] = min(found.get(place, attempt.result_index), attempt.result_index)
    return found


def _values(subject: Subject, attempt: Any, names: tuple[str, ...]) -> bytes:
    if not names:
        return b""
    arguments = subject.arguments(attempt)
    return canonical([semantic(value_at(arguments, name)) for name in names])
