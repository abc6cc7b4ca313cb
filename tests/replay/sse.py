"""Reads server-sent events the plain way, by the WHATWG rules that the providers' streams need."""

from collections.abc import Iterable


def read_events(chunks: Iterable[bytes]) -> list[tuple[str | None, str]]:
    """Return (event, data) of every whole event in a stream of bytes, however it was cut into chunks."""
    blocks = b"".join(chunks).decode("utf-8").split("\n\n")
    assert blocks[-1] == "", "a stream ends with an empty line"
    events = []
    for block in blocks[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert set(fields) <= {"event", "data"}
        events.append((fields.get("event"), fields["data"]))
    return events
