"""A folder for one recorded run, with nothing of this machine's environment, and what is in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from goldentrace import Recorder
from goldentrace.codec.canonical import decode
from goldentrace.codec.shards import merge
from goldentrace.codec.trace import read_trace
from goldentrace.model.event import ABSENT, AnyEvent
from goldentrace.model.trace import Trace
from goldentrace.store.claim import shard_paths

VARIABLES = ("TRACE", "SCENARIO", "SEED", "LIMITS", "RECORD")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(f"GOLDENTRACE_{name}", raising=False)


class Run:
    """One recorded run: `Run.recorder()` records it, the rest reads it back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def recorder(self, **options: Any) -> Recorder:
        return Recorder(self.path, **options)

    @property
    def trace(self) -> Trace:
        return merge([read_trace(path.read_bytes(), str(path)) for path in shard_paths(self.path)])

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The events, or those of one type, as they were written but for clocks, `seq` and the folders of the machine."""
        shown = [as_shown(event) for event in self.trace.events]
        return [event for event in shown if kind is None or event["type"] == kind]

    def outline(self) -> list[str]:
        """Calls, results and decisions in a line each."""
        lines = []
        for event in self.events():
            match event["type"]:
                case "tool_call":
                    lines.append(f"call {event['tool_name']} {event.get('attempt', 1)} {event.get('origin', 'model')}")
                case "tool_result":
                    lines.append(f"result {event.get('attempt', 1)} {event['status']}")
                case "decision":
                    lines.append(f"decision {event['decision']}")
                case "limit":
                    lines.append(f"limit {event['limit']} {event['value']:g}/{event['max']:g}")
                case "model_turn":
                    lines.append(f"turn {event['turn']}")
                case "trace_end":
                    lines.append(f"end {event['outcome']} {event['stop_reason']}")
        return lines


def as_shown(event: AnyEvent) -> dict[str, Any]:
    """An event as a dict of what it states."""
    hidden = {"seq", "ts", "mono_ns", "cwd", "home", "tmp", "sha256"}
    shown: dict[str, Any] = {"type": event.__struct_config__.tag}
    for field in msgspec.structs.fields(type(event)):
        value = getattr(event, field.name)
        if field.name in hidden or value in (field.default, ABSENT):
            continue
        shown[field.name] = decode(value) if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)
    return shown


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "run.jsonl")


@pytest.fixture
def fails_then(request: pytest.FixtureRequest) -> Callable[..., Callable[..., Any]]:
    """Return a maker of tools that raise the given exceptions in turn, then return the arguments."""

    def make(*errors: BaseException) -> Callable[..., Any]:
        left = list(errors)

        def charge_card(order_id: str, key: str = "k1") -> dict[str, str]:
            if left:
                raise left.pop(0)
            return {"order_id": order_id, "key": key}

        return charge_card

    return make
