"""Detection by content, the table of formats, and what a person is told when it does not work out."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from goldentrace.errors import ConfigError, InputError
from goldentrace.model.trace import Trace
from goldentrace.sources import registry
from goldentrace.sources.document import Document
from goldentrace.sources.registry import detect, find_source, read_traces, sources, trace_name
from goldentrace.sources.source import Source
from tests.sources.reading import document_of, read_all, read_one

NATIVE = (
    '{"type":"trace_start","format":"goldentrace/1","trace_id":"run-7"}\n'
    '{"type":"tool_call","call_id":"c","tool_name":"t"}\n'
    '{"type":"tool_result","call_id":"c","status":"ok"}\n'
    '{"type":"trace_end","outcome":"success","stop_reason":"final_answer"}\n'
)
CHAT = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "done"},
]


def nothing(_: Document) -> Iterator[Trace]:
    yield from ()


def test_every_format_has_a_name_of_its_own_and_a_title() -> None:
    names = [source.name for source in sources()]
    assert len(set(names)) == len(names)
    assert all(source.title and source.name == source.name.lower() for source in sources())
    assert all(find_source(name).name == name for name in names)


def test_the_table_is_in_order_the_native_format_first() -> None:
    first, *others = registry.MODULES
    assert first == "native"
    assert others == sorted(set(others))


def test_a_native_trace_comes_by_the_same_door(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(NATIVE)
    (trace,) = read_traces(path)
    assert trace.format == "goldentrace/1"
    assert trace_name(trace) == "run-7"


def test_reading_a_native_trace_imports_no_other_format(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(NATIVE)
    program = (
        "import sys; from goldentrace.sources.registry import read_traces; list(read_traces(sys.argv[1]));"
        "print([m for m in sys.modules if m.startswith('goldentrace.sources.') and m.rsplit('.', 1)[1] in "
        f"{tuple(name for name in registry.MODULES if name != 'native')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_suffix_decides_nothing(tmp_path: Path) -> None:
    for name in ("run.yaml", "run.har", "run.eval", "run"):
        path = tmp_path / name
        path.write_text(json.dumps(CHAT))
        assert [trace.format for trace in read_traces(path)] == ["openai-chat"]


@pytest.mark.parametrize(
    "data", [b'{"hello": "world"}', b"plain text\nover lines\n", b"\x89PNG\r\n\x1a\n\0\0", b"[1, 2, 3]", b"[]", b'"x"', b"<html></html>", b"- yaml\n- list\n"]
)  # fmt: skip
def test_an_unknown_file_lists_the_formats(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        detect(Document.of(data, "thing"))
    assert str(caught.value.where) == "thing"
    assert "--format" in caught.value.next_step
    assert all(source.name in caught.value.next_step for source in sources())


def test_two_matches_name_the_candidates_and_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    twins = tuple(Source(name, "twin", lambda _head: True, nothing) for name in ("left", "right"))
    monkeypatch.setattr(registry, "sources", lambda: twins)
    with pytest.raises(InputError, match="left or right") as caught:
        detect(document_of({"a": 1}))
    assert "--format" in caught.value.next_step


def test_what_may_match_counts_only_where_nothing_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    sure = Source("sure", "", lambda head: head.has_key("mark"), nothing)
    perhaps = Source("perhaps", "", lambda _head: False, nothing, lambda _head: True)
    monkeypatch.setattr(registry, "sources", lambda: (sure, perhaps))
    assert detect(document_of({"mark": 1})).name == "sure"
    assert detect(document_of({"other": 1})).name == "perhaps"


def test_an_unknown_format_name_suggests_one() -> None:
    with pytest.raises(ConfigError) as caught:
        find_source("openai_chat")
    assert "did you mean openai-chat?" in caught.value.next_step


def test_a_named_format_that_finds_nothing_says_so() -> None:
    with pytest.raises(InputError, match="no trace in it"):
        read_all({"hello": "world"}, "tau-bench")


def test_a_first_message_beyond_the_head_is_still_recognised() -> None:
    long = [{"role": "user", "content": "x" * 200_000}, *CHAT[1:]]
    assert read_one(long).format == "openai-chat"
    assert [trace.format for trace in read_all(({"messages": long},))] == ["openai-chat"]


@pytest.mark.parametrize("size_kib", [1, 100, 5000])
def test_the_key_that_says_whose_run_it_is_may_come_behind_the_messages(size_kib: int) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "user", "content": "x" * 1024}] * (size_kib - 1) + [{"role": "assistant", "content": None, "tool_calls": [call]}]
    assert detect(document_of({"messages": messages[::-1]})).name == "openai-chat"
    if size_kib < 4096:  # as far as detection looks
        assert detect(document_of({"messages": messages[::-1], "pass": True})).name == "toolathlon"
        assert detect(document_of([{"messages": messages[::-1], "benchmark_name": "b", "eval_result": {}}])).name == "tau2-bench"


def test_a_torn_last_line_makes_the_trace_incomplete() -> None:
    lines = "".join(json.dumps(message) + "\n" for message in CHAT)
    trace = read_one(lines + '{"role": "assistant", "cont')
    assert trace.incomplete == "the last line is torn (27 bytes dropped)"
    assert trace.notes[-1].line == 4
    assert read_one(lines).incomplete is None


def test_a_damaged_line_names_file_and_line() -> None:
    lines = [json.dumps(message) for message in CHAT]
    with pytest.raises(InputError) as caught:
        read_all("\n".join([lines[0], "{oops}", *lines[1:], ""]), "openai-chat")
    assert str(caught.value.where) == "file:2"
