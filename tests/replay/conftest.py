"""A scripted model served for a test, in a process of its own, as a run of a scenario has it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goldentrace.replay.process import ScriptHandle, start_script

Serve = Callable[..., ScriptHandle]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Return a function that serves a script, given as YAML; all servers stop with the test."""
    handles: list[ScriptHandle] = []

    def start(text: str, *, seed: int | None = 7) -> ScriptHandle:
        path = tmp_path / f"script-{len(handles)}.yaml"
        path.write_text(text)
        handle = start_script(
            path, seed=seed, journal_path=tmp_path / f"journal-{len(handles)}.jsonl", scenario_id="test"
        )
        handles.append(handle)
        return handle

    yield start
    for handle in handles:
        handle.stop()
