"""Damaged and hostile files: whatever is done to a file, it is read as traces or refused with an InputError."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.errors import InputError
from goldentrace.model.trace import Trace
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.document import Document
from goldentrace.sources.registry import detect, document_traces, sources
from tests.sources.test_fixtures import FILES

FORMATS = [source.name for source in sources()]
CONTENTS = {path: path.read_bytes() for path in FILES}
FORMAT_OF = {path: detect(Document.of(data)).name for path, data in CONTENTS.items()}
JUNK: list[Any] = [
    None, True, False, 0, -1, 2**63, 10**400, 1e308, -0.5, "", "x", "\ud800", "\0", "{", "Infinity", [], {}, [None], [[]], [1, "a"], {"": None},
    {"id": []}, {"type": 5}, {"function": None}, {"role": "assistant", "content": [None, 3, {"type": None}]}, {"text": {"text": "t"}},
    {"type": "tool_use"}, {"name": {}, "arguments": 7}, [{"role": "tool"}], [{"id": {}, "call_id": []}],
]  # fmt: skip


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def check(data: bytes, format_name: str | None) -> list[Trace]:
    """Read, and have every trace written, read again and counted; an InputError is a fine answer, anything else is not."""
    try:
        traces = list(document_traces(Document.of(data, "file"), format_name))
    except InputError:
        return []
    for trace in traces:
        written = b"".join(encode_event(event) for event in trace.events)
        again = read_trace(written, "again")
        assert len(again.events) == len(trace.events)
        assert coverage_table(again).calls == coverage_table(trace).calls
    return traces


def values_of(data: bytes) -> list[Any] | None:
    """The JSON values of a file, None where it is none."""
    try:
        return [json.loads(line) for line in data.splitlines()]
    except ValueError:
        pass
    try:
        return [json.loads(data)]
    except ValueError:
        return None


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside a value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else list(range(len(each))) if isinstance(each, list) else []
        found += [(each, key) for key in keys]
        waiting += [each[key] for key in keys]
    return found


def mutate(values: list[Any], draw: random.Random, junk: list[Any]) -> None:
    """Change one place: another value, one less, one twice, two exchanged, or a key of another name."""
    container, key = draw.choice(places(values))
    action = draw.choice(["replace", "replace", "delete", "repeat", "exchange", "rename"])
    if action == "replace":
        container[key] = copy.deepcopy(draw.choice(junk))
    elif action == "delete":
        del container[key]
    elif action == "repeat" and isinstance(container, list):
        container.insert(key, copy.deepcopy(container[key]))
    elif action == "rename" and isinstance(container, dict):
        container[draw.choice(["id", "type", "role", "content", "x"])] = container.pop(key)
    else:
        other, place = draw.choice(places(values))
        container[key], other[place] = copy.deepcopy([other[place], container[key]])


def written(values: list[Any]) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values)


@given(st.sampled_from(FILES), st.randoms(use_true_random=False), st.integers(1, 4), st.booleans())
@settings(max_examples=400, deadline=None)
def test_values_of_the_wrong_kind(path: Path, draw: random.Random, count: int, is_named: bool) -> None:
    values = values_of(CONTENTS[path])
    if values is None:
        return  # YAML: bytes below
    for _ in range(count):
        if places(values):
            mutate(values, draw, JUNK)
    check(written(values), FORMAT_OF[path] if is_named else None)


@given(st.sampled_from(FILES), st.integers(min_value=0), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_file_that_was_cut_off(path: Path, cut: int, is_named: bool) -> None:
    data = CONTENTS[path]
    check(data[: cut % len(data)] or b" ", FORMAT_OF[path] if is_named else None)


@given(st.sampled_from(FILES), st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), min_size=1, max_size=6))
@settings(max_examples=300, deadline=None)
def test_bytes_that_flipped(path: Path, flips: list[tuple[int, int]]) -> None:
    data = bytearray(CONTENTS[path])
    for position, byte in flips:
        data[position % len(data)] = byte
    check(bytes(data), FORMAT_OF[path])


@given(st.sampled_from(FILES), st.sampled_from(FORMATS))
@settings(max_examples=200, deadline=None)
def test_a_file_that_is_read_as_another_format(path: Path, format_name: str) -> None:
    check(CONTENTS[path], format_name)


@given(st.sampled_from(FORMATS), st.recursive(st.sampled_from(JUNK), lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["messages", "role", "content", "type", "tool_calls", "input", "output", "parts", "data", "simulations", "traj", "interactions", "request", "response", "choices", "message", "delta"]), inner, max_size=5), max_leaves=12))
@settings(max_examples=400, deadline=None)
def test_values_of_no_format_at_all(format_name: str, value: Any) -> None:
    check(json.dumps(value).encode(), format_name)


@pytest.mark.parametrize("levels", [150, 400, 900, 3000])
@pytest.mark.parametrize("path", [path for path in FILES if values_of(CONTENTS[path]) is not None], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_deep_nesting_at_every_place(path: Path, levels: int) -> None:
    draw = random.Random(levels)
    for _ in range(8):
        values = values_of(CONTENTS[path])
        assert values is not None
        container, key = draw.choice(places(values))
        container[key] = "DEEP"
        check(written(values).replace(b'"DEEP"', b"[" * levels + b"]" * levels), FORMAT_OF[path])


@pytest.mark.full
def test_real_files_with_wrong_values(corpus: Path) -> None:
    draw = random.Random(20260101)
    files = sorted(path for path in corpus.rglob("*.json*") if path.stat().st_size < 300_000)
    count = 0
    for path in files:
        data = path.read_bytes()
        try:
            format_name = detect(Document.of(data, path.name)).name
        except InputError:
            continue
        for _ in range(25):
            values = values_of(data)
            if values is None:
                break
            mutate(values, draw, JUNK)
            check(written(values), format_name)
            check(data[: draw.randrange(1, len(data))], format_name)
            count += 1
    assert count > 500
