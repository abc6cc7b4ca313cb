"""What must be known of a Claude Code session before its first event: which rows count, and what later rows say of it.

Rows form a tree by `parentUuid`. Compaction appends old rows again under their uuid, a rewind leaves a branch behind,
parents may never have been written. This first pass looks at the frame of each row only, so that a session of hundreds
of megabytes is scanned quickly and in little memory. Must not build events.
"""

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from goldentrace.model.event import ABSENT
from goldentrace.sources.claude_messages import AGENT_TOOLS, Spent, spent_of
from goldentrace.sources.claude_rows import ResultCopy, Row, copy_of, decoded, rows
from goldentrace.sources.document import Document
from goldentrace.sources.shapes import as_name, as_object, as_objects, as_text

NO_PARENT: Final = -1
PROMPT: Final = 2
FIRST: Final = ("sessionId", "cwd", "version", "gitBranch", "timestamp")
SPOKEN: Final = ("user", "assistant")


class _Response(msgspec.Struct, gc=False):
    id: Any = None
    stop_reason: Any = None
    usage: Any = None


_RESPONSES: Final = msgspec.json.Decoder(_Response)


@dataclass(slots=True)
class Lineage:
    """skipped: one byte per row, not 0 where it does not count; call_of_agent: id of a subagent -> call that began it;
    call_of_prompt: prompt of a subagent -> call, for rows without an agent's id; others: rows of other types;
    first: what the first rows say of the session (id, folder, version, time).
    """

    skipped: bytearray = field(default_factory=bytearray)
    spent: dict[str, Spent] = field(default_factory=dict)
    call_of_agent: dict[str, str] = field(default_factory=dict)
    type_of_call: dict[str, str] = field(default_factory=dict)
    call_of_prompt: dict[str, str] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    first: dict[str, Any] = field(default_factory=dict)
    is_subagent: bool = True
    repeated: int = 0
    abandoned: int = 0


def scan(document: Document) -> Lineage:
    """Return the lineage of a session. Raises: InputError with the line of what is not JSON."""
    lineage = Lineage()
    tree = _Tree()
    for line, data, row in rows(document):
        if row is None or row.type not in SPOKEN:
            kind = as_text(row.type if row is not None else None) or "unknown"
            subtype = as_text(row.subtype) if row is not None and kind == "system" else None
            lineage.others[f"{kind}/{subtype}" if subtype else kind] += 1
        else:
            lineage.is_subagent = lineage.is_subagent and row.is_sidechain is True
        if "cwd" not in lineage.first and row is not None and as_text(row.session_id) is not None:
            frame = as_object(document.decode(data, line))
            lineage.first = {**{key: frame[key] for key in FIRST if key in frame}, **lineage.first}
        tree.add(row)
        if row is not None and not tree.is_repeated_last:
            _collect(lineage, row)
    lineage.repeated = sum(tree.skipped)
    tree.drop_abandoned(is_subagent=lineage.is_subagent)
    lineage.abandoned = sum(tree.skipped) - lineage.repeated
    lineage.skipped = tree.skipped
    return lineage


class _Tree:
    """Rows as numbers; the order is that of the file."""

    def __init__(self) -> None:
        self.skipped = bytearray()
        self.is_repeated_last = False
        self._number_of: dict[str, int] = {}
        self._parents: list[str | None] = []
        self._kinds = bytearray()
        self._last = NO_PARENT

    def add(self, row: Row | None) -> None:
        number = len(self.skipped)
        uuid = as_text(row.uuid) if row is not None else None
        self.is_repeated_last = uuid is not None and uuid in self._number_of
        self.skipped.append(self.is_repeated_last)
        if uuid is not None and not self.is_repeated_last:
            self._number_of[uuid] = number
        parent = as_text(row.parent_uuid) or as_text(row.logical_parent_uuid) if row is not None else None
        self._parents.append(None if self.is_repeated_last else parent)
        self._kinds.append(_kind(row))
        if self._kinds[-1] and not self.is_repeated_last and row is not None and row.is_sidechain is not True:
            self._last = number

    def drop_abandoned(self, *, is_subagent: bool) -> None:
        """Mark what a rewind left behind: of prompts with one parent, all but the one that the last row descends from;
        the latest, where it descends from none of them (compaction cuts the chain).
        """
        parents = self._resolved()
        if is_subagent:
            return
        kept = self._ancestors(parents, self._last)
        rivals: dict[int, list[int]] = {}
        for number, kind in enumerate(self._kinds):
            above = self._spoken_above(parents, number) if kind == PROMPT and not self.skipped[number] else NO_PARENT
            if above != NO_PARENT:
                rivals.setdefault(above, []).append(number)
        dropped = {
            number
            for group in rivals.values()
            if len(group) > 1
            for number in set(group) - {next((each for each in group if each in kept), group[-1])}
        }
        if dropped:
            self._drop_below(parents, dropped)

    def _resolved(self) -> "array[int]":
        found = array("q", (self._number_of.get(name, NO_PARENT) if name else NO_PARENT for name in self._parents))
        self._parents = []
        self._number_of = {}
        return found

    def _ancestors(self, parents: "array[int]", number: int) -> set[int]:
        found: set[int] = set()
        while number != NO_PARENT and number not in found:
            found.add(number)
            number = parents[number]
        return found

    def _spoken_above(self, parents: "array[int]", number: int) -> int:
        """The nearest user or assistant row above; attachments and the like hang between."""
        seen = {number}
        number = parents[number]
        while number != NO_PARENT and number not in seen and not self._kinds[number]:
            seen.add(number)
            number = parents[number]
        return NO_PARENT if number in seen else number

    def _drop_below(self, parents: "array[int]", dropped: set[int]) -> None:
        state: dict[int, bool] = dict.fromkeys(dropped, True)
        for number in range(len(parents)):
            path: list[int] = []
            each = number
            while each != NO_PARENT and each not in state:
                state[each] = False
                path.append(each)
                each = parents[each]
            is_dropped = each != NO_PARENT and state[each]
            for step in path:
                state[step] = is_dropped
        for number, is_dropped in state.items():
            if is_dropped:
                self.skipped[number] = 1


def _kind(row: Row | None) -> int:
    """0: no message; 1: a message; PROMPT: what a person typed, in the main conversation."""
    if row is None or row.type not in SPOKEN:
        return 0
    is_typed = row.type == "user" and not (row.is_meta is True or row.is_compact_summary is True)
    is_main = row.is_sidechain is not True
    return PROMPT if is_typed and is_main and b'"tool_result"' not in bytes(row.message) else 1


def _collect(lineage: Lineage, row: Row) -> None:
    if row.type == "assistant":
        _collect_response(lineage, row)
    elif row.type == "user" and row.tool_use_result != ABSENT and b'"agentId"' in bytes(row.tool_use_result):
        copy = copy_of(row)
        agent_id = as_name(copy.agent_id) if isinstance(copy, ResultCopy) else None
        blocks = as_objects(as_object(decoded(row.message)).get("content"))
        call_id = next((as_name(block.get("tool_use_id")) for block in blocks if "tool_use_id" in block), None)
        if agent_id is not None and call_id is not None:
            lineage.call_of_agent.setdefault(agent_id, call_id)


def _collect_response(lineage: Lineage, row: Row) -> None:
    try:
        response = _RESPONSES.decode(row.message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    message_id = as_text(response.id)
    if message_id is not None:
        told = {"usage": response.usage, "stop_reason": response.stop_reason}
        lineage.spent[message_id] = spent_of(told, lineage.spent.get(message_id))
    data = bytes(row.message)
    if b'"tool_use"' in data and any(f'"{name}"'.encode() in data for name in AGENT_TOOLS):
        for block in as_objects(as_object(decoded(row.message)).get("content")):
            if block.get("name") in AGENT_TOOLS and block.get("type") == "tool_use":
                _collect_agent(lineage, as_name(block.get("id")), as_object(block.get("input")))


def _collect_agent(lineage: Lineage, call_id: str | None, given: dict[str, Any]) -> None:
    kind, prompt = as_text(given.get("subagent_type")), as_text(given.get("prompt"))
    if call_id is not None and kind is not None:
        lineage.type_of_call[call_id] = kind
    if call_id is not None and prompt is not None:
        lineage.call_of_prompt.setdefault(prompt, call_id)
