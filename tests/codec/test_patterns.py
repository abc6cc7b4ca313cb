"""Patterns of users match what Python's own would, in bounded time."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from goldentrace.codec.patterns import MAX_CHARACTERS, PatternTimeoutError, compile_pattern, remember
from goldentrace.errors import ConfigError, Where

PARTS = [
    "a", "b", ".", "\\.", "\\d", "\\w+", "[ab]", "[^a]", "[]a]", "[{e}]", "a*", "b+?", "a{2}", "a{1,}", "{", "}", "{e}", "{i<2}",
    "{1}x", "|", "(a|b)", "(?:ab)+", "(?P<n>a)", "^", "$", "\\b", "(?<=a)", "(?!b)", "(?i:A)", "\\{", "é", " ", "[\\]]", "\\Z",
]  # fmt: skip
HANGS = ["(a+)+$", "(a|aa)+$", "(a|a)*b", "(.*a){25}$"]


@given(st.lists(st.sampled_from(PARTS), max_size=6).map("".join), st.text("ab1.{}e A]é\n", max_size=12))
def test_a_pattern_matches_what_the_standard_library_says(pattern: str, text: str) -> None:
    try:
        plain = re.compile(pattern)
    except re.error:
        with pytest.raises(ConfigError, match="not a regular expression"):
            compile_pattern(pattern)
        return
    found = compile_pattern(pattern)
    assert found.is_found(text) == (plain.search(text) is not None)
    assert found.is_whole(text) == (plain.fullmatch(text) is not None)
    spans = [match.span() for match in plain.finditer(text) if match.end() > match.start()]
    assume(plain.search("") is None)  # after an empty match the two may go on elsewhere
    assert found.spans(text) == spans


@pytest.mark.parametrize("pattern", HANGS)
def test_a_pattern_that_would_run_for_ever_is_stopped(monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    monkeypatch.setattr("goldentrace.codec.patterns.MAX_SECONDS", 0.05)
    remember(pattern, Where("p.yaml", 3, "$.redact"))
    stopped: list[PatternTimeoutError] = []
    for ask in (compile_pattern(pattern).is_found, compile_pattern(pattern).is_whole, compile_pattern(pattern).spans):
        for text in ("a" * 5000 + "!", "a" * 5000 + "b!"):
            try:
                ask(text)
            except PatternTimeoutError as error:
                stopped.append(error)
    assert stopped
    for error in stopped:
        assert repr(pattern) in error.what
        assert str(error.where) == "p.yaml:3 $.redact"
        assert error.next_step


@pytest.mark.parametrize(
    "pattern", ["(", "a{2,1}", "(?<=a*)b", "[", "\\", "a" * (MAX_CHARACTERS + 1), "(" * 5000 + ")" * 5000]
)
def test_what_is_no_pattern_is_refused_with_its_place(pattern: str) -> None:
    with pytest.raises(ConfigError, match="not a regular expression") as caught:
        compile_pattern(pattern, Where("p.yaml", 3))
    assert str(caught.value.where) == "p.yaml:3"


def test_a_long_text_gets_more_time() -> None:
    text = "word " * 400_000 + "secret-1"
    assert compile_pattern(r"(?:[a-z]+[ -])+\d").is_found(text)
