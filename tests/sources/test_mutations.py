"""Damaged and hostile files: whatever is done to a file, it is read as traces or refused with an InputError.

Six kinds of damage are done to files of every format in the registry (KINDS), from the fixtures and, in the slow proof, from
real files. A format without a file to damage fails.
"""

import copy
import gzip
import json
import os
import random
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.cli.main import run
from goldentrace.codec.trace import encode_event, read_trace
from goldentrace.errors import InputError
from goldentrace.model.trace import Trace
from goldentrace.sources.coverage import Coverage, coverage_table
from goldentrace.sources.document import Document
from goldentrace.sources.registry import detect, document_traces, sources
from tests.corpus.counting.files import read_list
from tests.sources.test_fixtures import FILES

FORMATS = [source.name for source in sources()]
CONTENTS = {path: path.read_bytes() for path in FILES}
FORMAT_OF = {path: detect(Document.of(data)).name for path, data in CONTENTS.items()}
JUNK: list[Any] = [
    None, True, False, 0, -1, 2**63, 10**400, 1e308, -0.5, "", "x", "\ud800", "\0", "{", "Infinity", [], {}, [None], [[]], [1, "a"], {"": None},
    {"id": []}, {"type": 5}, {"function": None}, {"role": "assistant", "content": [None, 3, {"type": None}]}, {"text": {"text": "t"}},
    {"type": "tool_use"}, {"name": {}, "arguments": 7}, [{"role": "tool"}], [{"id": {}, "call_id": []}],
]  # fmt: skip
HUGE: list[Any] = [2**63, 2**64, -(2**63) - 1, 10**30, 10**400, -(10**400), 1e308, -1e308, 1e-320, "9" * 40, "1e999", float("inf"), float("nan")]
ID_KEY = re.compile(r"(^|[._-])(id|ids|uuid|index)$|I[dD]$")
SAID_KEY = re.compile(r"(^|[._])(type|role|name|kind|key)$")


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
    """The values of a file of JSON, JSON lines, JSON one after another or YAML; None where it is none of them."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if text.startswith("interactions:"):
        return [yaml.safe_load(text)]
    found: list[Any] = []
    position = 0
    while rest := text[position:].lstrip():
        try:
            value, length = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            return None
        found.append(value)
        position = len(text) - len(rest) + length
    return found


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


def written(values: list[Any], *, is_yaml: bool = False) -> bytes:
    if is_yaml:
        return yaml.safe_dump(values[0] if values else None, sort_keys=False).encode()
    return b"\n".join(json.dumps(value).encode() for value in values)


def is_yaml(data: bytes) -> bool:
    return data.startswith(b"interactions:")


def damage_places(values: list[Any], draw: random.Random, choose: Callable[[Any, Any], bool], junk: list[Any]) -> None:
    """Put junk into one to four of the places that are chosen, or of all where none is."""
    found = [(container, key) for container, key in places(values) if choose(key, container[key])] or places(values)
    for container, key in draw.sample(found, min(len(found), draw.randint(1, 4))):
        container[key] = copy.deepcopy(draw.choice(junk))


def truncated(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(1, len(data))]


def shuffled(value: Any, draw: random.Random) -> Any:
    if isinstance(value, list):
        return [shuffled(each, draw) for each in value]
    if isinstance(value, dict):
        return {key: shuffled(value[key], draw) for key in draw.sample(list(value), len(value))}
    return value


def with_shuffled_keys(data: bytes, draw: random.Random) -> bytes:
    return written([shuffled(value, draw) for value in values_of(data) or []], is_yaml=is_yaml(data))


def with_wrong_types(data: bytes, draw: random.Random) -> bytes:
    values = values_of(data) or []
    damage_places(values, draw, lambda _, __: True, JUNK)
    return written(values, is_yaml=is_yaml(data))


def with_missing_ids(data: bytes, draw: random.Random) -> bytes:
    """Without one id, without every one of that name, or without all ids; where a format has none, what says what a value is."""
    values = values_of(data) or []
    named = [(container, key) for container, key in places(values) if isinstance(container, dict)]
    ids = [each for each in named if ID_KEY.search(each[1])] or [each for each in named if SAID_KEY.search(each[1])]
    if not ids:
        return data
    one = draw.choice(ids)
    for container, key in draw.choice([[one], [each for each in ids if each[1] == one[1]], ids]):
        container.pop(key, None)
    return written(values, is_yaml=is_yaml(data))


def with_huge_numbers(data: bytes, draw: random.Random) -> bytes:
    """In places of numbers, also of those in text."""
    values = values_of(data) or []
    damage_places(values, draw, lambda _, value: re.fullmatch(r"-?[\d.]+", str(value)) is not None, HUGE)
    return written(values, is_yaml=is_yaml(data))


def with_deep_nesting(data: bytes, draw: random.Random) -> bytes:
    values = values_of(data) or []
    container, key = draw.choice(places(values))
    container[key] = "DEEP"
    opened, closed = draw.choice([(b"[", b"]"), (b'{"a":', b"}"), (b'{"content":[', b"]}")])
    levels = draw.choice([60, 150, 400, 900, 3000])
    return re.sub(rb'"DEEP"|\bDEEP\b', (opened * levels + b"1" + closed * levels).replace(b"\\", rb"\\"), written(values, is_yaml=is_yaml(data)), count=1)


KINDS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "truncated": truncated, "shuffled keys": with_shuffled_keys, "wrong types": with_wrong_types,
    "missing ids": with_missing_ids, "huge numbers": with_huge_numbers, "deep nesting": with_deep_nesting,
}  # fmt: skip


def seeds() -> dict[str, list[bytes]]:
    """By format, the fixtures whose values can be damaged: all but protobuf and parquet."""
    found: dict[str, list[bytes]] = defaultdict(list)
    for path, data in CONTENTS.items():
        if values_of(data) is not None:
            found[FORMAT_OF[path]].append(data)
    return found


SEEDS = seeds()


def counts_of(traces: list[Trace]) -> list[Coverage]:
    return [coverage_table(trace) for trace in traces]


def damage(data: bytes, kind: str, format_name: str, draw: random.Random) -> None:
    """Damage a file and read it, by its name or by its content. The order of keys is no damage at all."""
    damaged = KINDS[kind](data, draw)
    traces = check(damaged, draw.choice([format_name, None]))
    if kind == "shuffled keys":
        assert counts_of(traces) == counts_of(check(data, format_name)), damaged.decode()


def test_every_format_of_the_registry_has_a_file_to_damage() -> None:
    assert SEEDS.keys() == set(FORMATS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_or_refused(name: str, kind: str) -> None:
    draw = random.Random(f"{name} {kind}")
    for _ in range(10):
        damage(draw.choice(SEEDS[name]), kind, name, draw)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORMATS)
def test_the_command_ends_with_0_or_3(name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GOLDENTRACE_DEBUG", "1")  # a defect shows where it is
    draw = random.Random(f"{kind} {name}")
    for number in range(2):
        file = tmp_path / f"{number}.txt"
        file.write_bytes(KINDS[kind](draw.choice(SEEDS[name]), draw))
        named = draw.choice([[], ["--format", name]])
        code = run(["import", str(file), "-o", f"{tmp_path}/out-{number}/", *named])
        said = capsys.readouterr().err
        assert code in (0, 3), said
        assert "internal error" not in said


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, str]]:
    """By name, files whose bytes no value stands for: the data, and its format."""
    found = {path.name: (data, FORMAT_OF[path]) for path, data in CONTENTS.items() if values_of(data) is None}
    rollout = next(data for path, data in CONTENTS.items() if FORMAT_OF[path] == "codex")
    found["rollout.gz"] = gzip.compress(rollout), "codex"
    found["rollout.zst"] = pytest.importorskip("zstandard").compress(rollout), "codex"
    log = pytest.importorskip("inspect_ai.log")
    file = tmp_path_factory.mktemp("inspect") / "log.eval"
    log.write_eval_log(log.EvalLog.model_validate_json(SEEDS["inspect"][0]), str(file))
    found["log.eval"] = file.read_bytes(), "inspect"
    assert {Path(name).suffix for name in found} == {".pb", ".parquet", ".gz", ".zst", ".eval"}
    return found


@pytest.mark.parametrize("examples", [15, pytest.param(300, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_packed_bytes_that_flipped_or_end_early(packed: dict[str, tuple[bytes, str]], examples: int) -> None:
    draw = random.Random(f"packed {os.environ.get('GOLDENTRACE_SEED', examples)}")
    for data, format_name in packed.values():
        for number in range(examples):
            damaged = bytearray(data)
            for _ in range(draw.randint(1, 4)):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            check(truncated(bytes(damaged), draw) if number % 3 == 0 else bytes(damaged), draw.choice([format_name, None]))


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORMATS)
def test_real_files_are_read_or_refused_however_damaged(name: str, kind: str, corpus: Path) -> None:
    """Twenty times as many examples, half of them from real files where there are any; GOLDENTRACE_SEED draws others."""
    draw = random.Random(f"{name} {kind} {os.environ.get('GOLDENTRACE_SEED', 'full')}")
    listed = [path for each, line in read_list().items() if line.get("format") == name for path in [corpus / each] if path.stat().st_size < 300_000]
    real = [data for path in listed if values_of(data := path.read_bytes()) is not None]
    for number in range(200):
        damage(draw.choice(real if real and number % 2 else SEEDS[name]), kind, name, draw)


@given(st.sampled_from(FILES), st.randoms(use_true_random=False), st.integers(1, 4), st.booleans())
@settings(max_examples=400, deadline=None)
def test_values_of_the_wrong_kind(path: Path, draw: random.Random, count: int, is_named: bool) -> None:
    values = values_of(CONTENTS[path])
    if values is None:
        return  # protobuf and parquet: bytes below
    for _ in range(count):
        if places(values):
            mutate(values, draw, JUNK)
    check(written(values, is_yaml=is_yaml(CONTENTS[path])), FORMAT_OF[path] if is_named else None)


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
