"""What is said of events and fields that nobody knows."""

import pytest

from goldentrace.model.trace import Note
from goldentrace.store.reader_notes import MAX_NOTES, reader_notes, unknown_types


def type_note(name: str, line: int | None = None) -> Note:
    return Note(f"event type {name!r} is not known and was left out", line)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("toolcall", "tool_call"), ("toolResult", "tool_result"), ("tool_cal", "tool_call"), ("tool_use", "tool_call")],
)
def test_the_type_that_was_meant_is_named(name: str, meant: str) -> None:
    assert reader_notes([type_note(name)])[0].endswith(f"did you mean {meant}?")


def test_a_type_that_resembles_none_gets_the_list() -> None:
    assert "known types: trace_start" in reader_notes([type_note("zebra")])[0]


@pytest.mark.parametrize(
    ("names", "meant"),
    [("arguments", "arguments -> args"), ("toolName, zzz", "toolName -> tool_name"), ("staus", "staus -> status")],
)
def test_the_field_that_was_meant_is_named(names: str, meant: str) -> None:
    assert reader_notes([Note(f"unknown fields kept in extra: {names}", 2)])[0].endswith(
        f"(line 2): did you mean {meant}?"
    )


def test_a_field_that_resembles_none_is_only_named() -> None:
    assert reader_notes([Note("unknown fields kept in extra: zebra")]) == ["unknown fields kept in extra: zebra"]


def test_what_is_said_often_is_said_once() -> None:
    (told,) = reader_notes([type_note("toolcall", 2), type_note("toolcall", 4)])
    assert "(2 times, first at line 2)" in told
    assert len(reader_notes([type_note(f"x{n}") for n in range(99)])) == MAX_NOTES + 1


def test_unknown_types_of_a_second_file_count_too() -> None:
    assert unknown_types([Note(f"a.1: {type_note('x').text}"), type_note("x"), Note("torn")]) == ["x"]
