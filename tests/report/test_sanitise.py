"""Each sink has one sanitiser, and what passes it does nothing there."""

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.report.sanitise import github_data, github_property, markdown, markdown_block, terminal, xml

ANY = st.text(st.characters(), max_size=80) | st.text(
    st.sampled_from("\x1b[:#]`@<>&|\n\r\t\0\x9b\u202e\ud800*_~ ab%,"), max_size=40
)
ACTING = re.compile(r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


@given(ANY)
def test_terminal_leaves_nothing_that_acts(text: str) -> None:
    safe = terminal(text)
    assert not ACTING.search(safe)
    assert not safe.lstrip().startswith("::")
    assert not re.search(r"##[^\s\[\]]*\[", safe)
    safe.encode("utf-8")


@given(ANY)
def test_terminal_is_idempotent(text: str) -> None:
    assert terminal(terminal(text)) == terminal(text)


@given(st.text(st.characters(whitelist_categories=("L", "N", "P", "S")), max_size=40))
def test_terminal_keeps_ordinary_text(text: str) -> None:
    if "::" not in text and "##" not in text:
        assert terminal(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("two\nlines\tand\r", "two\\nlines\\tand\\r"),
        ("\U000e0041", "\\U000e0041"),
        ("  ::error::x", "  \\x3a:error::x"),
        ("x ##[error]y", "x \\x23#[error]y"),
        ("##vso[task.setvariable]", "\\x23#vso[task.setvariable]"),
        ("std::vector, issue ## 3, [a]", "std::vector, issue ## 3, [a]"),
        ("<secret:1> <get_order#1/id>", "<secret:1> <get_order#1/id>"),
        ("family \U0001f469\u200d\U0001f467", "family \U0001f469\u200d\U0001f467"),
    ],
)
def test_terminal_by_example(text: str, safe: str) -> None:
    assert terminal(text) == safe


@given(ANY, ANY)
def test_a_workflow_command_stays_one_line_with_its_properties(title: str, message: str) -> None:
    line = f"::error title={github_property(title)}::{github_data(message)}"
    assert "\n" not in line
    assert "\r" not in line
    head, _, _ = line[2:].partition("::")
    assert head.count(",") == 0
    assert head.count("=") >= 1
    assert ":" not in head


@given(ANY)
def test_markdown_words_hold_no_markup(text: str) -> None:
    left = re.sub(r"&#\d+;", "", markdown(text))
    assert not re.search(r"[\\`*_{}\[\]()<>#+!|~$&@:\n\r]", left)


@given(ANY)
def test_a_fence_is_closed_by_its_own_end_alone(text: str) -> None:
    lines = markdown_block(text).split("\n")
    fence = lines[0].removesuffix("diff")
    assert lines[-1] == fence
    assert not any(re.match(rf" {{0,3}}`{{{len(fence)},}}\s*$", line) for line in lines[1:-1])


@given(ANY)
def test_xml_is_well_formed_and_keeps_what_it_can(text: str) -> None:
    root = ET.fromstring(f'<a b="{xml(text)}">{xml(text)}</a>')
    assert root.get("b") == root.text or not text
    if text.isprintable():
        assert (root.text or "") == text


@pytest.mark.parametrize("text", ["<script>", "</SCRIPT>", "<img src=x onerror=y>", "<svg/onload=z>", "<iframe\n"])
def test_an_element_in_a_block_begins_nothing_where_fences_are_not_read(text: str) -> None:
    assert text.split("\n", maxsplit=1)[0].lower() not in markdown_block(f"+ {text}").lower()


@pytest.mark.parametrize(
    "text", ["<img#1/id>", "<new:uuid>", "<secret:1>", "<now>", "a < b", "<base:1>", "<link.args/id>"]
)
def test_a_placeholder_in_a_block_stays_as_it_is(text: str) -> None:
    assert text in markdown_block(text)
