"""A trace: one run as an ordered stream of events, with what the reader had to say about it."""

import msgspec

from goldentrace.model.event import AnyEvent, ToolCall, ToolResult, TraceEnd, TraceStart


class Note(msgspec.Struct, frozen=True):
    """Something accepted but worth saying: an unknown event type, a dropped torn tail. line: 1-based, if known."""

    text: str
    line: int | None = None


class Trace(msgspec.Struct, frozen=True):
    """Events in order, first a TraceStart. Not to be mutated.

    path: where it came from, as shown to people; lines: 1-based line of each event, None where event i is line i + 1;
    incomplete: why the recording is not whole (no trace_end, torn tail), None if it is; format: who wrote it.
    """

    events: list[AnyEvent]
    path: str
    lines: list[int] | None = None
    incomplete: str | None = None
    notes: tuple[Note, ...] = ()
    format: str = "goldentrace/1"
    coverage: dict[str, str] = msgspec.field(default_factory=dict)
    """What the source did not record, name -> reason; for the table that `import` prints."""

    @property
    def start(self) -> TraceStart:
        first = self.events[0]
        assert isinstance(first, TraceStart), "a Trace begins with trace_start"
        return first

    @property
    def end(self) -> TraceEnd | None:
        last = self.events[-1]
        return last if isinstance(last, TraceEnd) else None

    def line_of(self, index: int) -> int:
        """1-based line of event `index`."""
        return index + 1 if self.lines is None else self.lines[index]

    def calls(self) -> list[ToolCall]:
        return [event for event in self.events if type(event) is ToolCall]

    def results(self) -> list[ToolResult]:
        return [event for event in self.events if type(event) is ToolResult]
