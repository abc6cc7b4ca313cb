"""Texts are made to fit by columns, and commands are never cut."""

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.report.cells import command_lines, fit, measure, pad, pad_left, take, take_end, wrap

TEXT = st.text(st.sampled_from("ab c漢é\u0301\U0001f469-"), max_size=80)


@given(TEXT, st.integers(0, 90))
def test_what_is_fitted_fits(text: str, columns: int) -> None:
    assert measure(fit(text, columns)) <= columns
    assert measure(take(text, columns)) <= columns
    assert measure(take_end(text, columns)) <= columns
    assert measure(pad(text, columns)) == columns
    assert measure(pad_left(text, columns)) == columns


@given(TEXT, st.integers(5, 90))
def test_both_ends_of_a_cut_text_are_kept(text: str, columns: int) -> None:
    fitted = fit(text, columns)
    if fitted != text:
        head, _, tail = fitted.partition("...")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert measure(text) > columns


def test_a_wide_letter_takes_two_columns_and_a_mark_none() -> None:
    assert [measure(text) for text in ("abc", "漢字", "e\u0301")] == [3, 4, 1]


def test_a_very_long_value_is_cut_without_being_measured_whole() -> None:
    assert fit("x" * 5_000_000 + "end", 20) == "xxxxxxxxx...xxxxxend"


@given(st.text(st.sampled_from("abc 漢"), max_size=200), st.integers(10, 60))
def test_wrapping_loses_no_word_that_fits(text: str, columns: int) -> None:
    lines = wrap(text, columns)
    assert all(measure(line) <= columns for line in lines)
    if all(measure(word) <= columns for word in text.split()):
        assert " ".join(lines).split() == text.split()


WORD = st.text(st.sampled_from("abcdefghij-_./ '\"$\\!*漢é#:"), min_size=1, max_size=120)


@given(st.lists(WORD, min_size=1, max_size=5), st.integers(40, 90))
def test_a_command_fits_and_is_what_was_meant(words: list[str], columns: int) -> None:
    lines = command_lines(words, columns, 11)
    assert all(measure(line) <= columns - (11 if number == 0 else 0) for number, line in enumerate(lines))
    if not any(line.startswith("$'") or " $'" in line for line in lines):
        assert (
            shlex.split(
                "".join(
                    line.removesuffix("\\") if number < len(lines) - 1 else line for number, line in enumerate(lines)
                )
            )
            == words
        )


@pytest.mark.parametrize(
    "words",
    [
        ["printf", "%s|", "a b", "x" * 200, "it's \\ " * 30],
        ["printf", "%s|", "\x1b[31mred\x1b[0m", "line\nbreak", "::error::", "é\u202e"],
        ["printf", "%s|", "goldens/" + "very-long-name/" * 12 + "file.jsonl"],
    ],
)
def test_a_shell_reads_the_words_back(words: list[str]) -> None:
    script = "\n".join(command_lines(words, 60, 11))
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == "".join(f"{word}|" for word in words[2:])
    assert not any(char in script for char in "\x1b\u202e")
