"""Follows the files of a run while they are being written, to see a limit passed as early as possible.

What it sees decides only that the command is stopped; what the trace then says is settled from the whole of it
(`collect`). This module must not write.
"""

import time
from pathlib import Path

import msgspec

from goldentrace.model.event import AnyEvent
from goldentrace.runner.job import Breach
from goldentrace.runner.metering import TraceMeter
from goldentrace.store.claim import shard_paths

_DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class TraceWatch:
    """Reads what is new in the files of a run. files: FILE (its shards are found) and the journals of started
    servers."""

    def __init__(self, trace: Path, meter: TraceMeter) -> None:
        self._trace = trace
        self._meter = meter
        self._places: dict[Path, int] = {}

    def look(self) -> Breach | None:
        """Count the events that were written since the last look; return the limit that one of them passes."""
        if not self._meter.is_counting:
            return None
        for path in shard_paths(self._trace):
            breach = self._read(path)
            if breach is not None:
                return breach
        return self._meter.overdue(time.monotonic_ns())

    def _read(self, path: Path) -> Breach | None:
        try:
            with path.open("rb") as file:
                file.seek(self._places.get(path, 0))
                data = file.read()
        except OSError:
            return None
        whole = data[: data.rfind(b"\n") + 1]
        self._places[path] = self._places.get(path, 0) + len(whole)
        for line in whole.splitlines():
            try:
                event = _DECODER.decode(line)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                continue  # unknown or damaged: the reader of the whole file judges it
            breach = self._meter.add(event)
            if breach is not None:
                return breach
        return None
