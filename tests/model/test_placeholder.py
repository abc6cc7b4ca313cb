"""Placeholders and labels: what is written can be taken apart again, whatever a tool or key is called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.model.operation import make_label
from goldentrace.model.placeholder import Placeholder, escape_place, parse_leaf, relabel, unescape_place

NAMES = st.text(min_size=1, max_size=12)
PLACES = st.just("") | st.text(max_size=12).map(lambda text: "/" + text)


@given(PLACES)
def test_a_place_survives_its_escape_and_cannot_end_a_placeholder(place: str) -> None:
    assert unescape_place(escape_place(place)) == place
    assert not set(escape_place(place)) & set("<> \n\t")


@given(NAMES, NAMES, st.integers(1, 10**6), PLACES, st.booleans())
def test_a_reference_is_read_as_the_label_and_place_it_was_written_with(
    agent: str, tool: str, number: int, place: str, is_args: bool
) -> None:
    label = make_label(agent, tool, number)
    text = f"<{label}{'.args' if is_args else ''}{escape_place(place)}>"
    for leaf, shape in ((text, "<>"), (f"str[9] h:0123456789ab {text} <new:uuid:2>", "str[9] h:0123456789ab <> <>")):
        found_shape, found = parse_leaf(leaf)
        assert found_shape == shape
        assert found[0] == Placeholder("args" if is_args else "result", text, label, place)
    assert [p.kind for p in found] == ["args" if is_args else "result", "new"]


@given(NAMES, NAMES, NAMES, NAMES, st.integers(1, 20), st.integers(1, 20))
def test_labels_of_different_operations_differ(
    agent: str, tool: str, other_agent: str, other_tool: str, number: int, other: int
) -> None:
    one, two = (agent, tool, number), (other_agent, other_tool, other)
    assert (make_label(*one) == make_label(*two)) is (one == two)


@pytest.mark.parametrize(
    ("text", "kind", "shape"),
    [
        ("<new:uuid>", "new", "uuid"),
        ("<new:uuid:2>", "new", "uuid"),
        ("<unknown:hex:12>", "unknown", "hex"),
        ("<now>", "clock", ""),
        ("<now-600s>", "clock", ""),
        ("<today+7d>", "clock", ""),
        ("<secret:3>", "secret", ""),
    ],
)
def test_placeholders_without_a_source(text: str, kind: str, shape: str) -> None:
    assert parse_leaf(text) == ("<>", (Placeholder(kind, text, shape=shape),))


@pytest.mark.parametrize("leaf", ["", "null", "int h:0123456789ab", "<later>", "<get/id>", "<get#x/id>", "a < b > c"])
def test_what_is_no_placeholder_stays_part_of_the_leaf(leaf: str) -> None:
    assert parse_leaf(leaf) == (leaf, ())


def test_relabelling_follows_the_mapping_and_touches_nothing_else() -> None:
    labels = {"get#1": "get#4", "a/b#2": "c#1"}
    assert relabel("<get#1/id>", labels) == "<get#4/id>"
    assert relabel("str[3] h:00 <a/b#2.args/x%20y> <get#2/id> <new:uuid>", labels) == (
        "str[3] h:00 <c#1.args/x%20y> <get#2/id> <new:uuid>"
    )
    for untouched in ("int h:00", "<new:uuid>", "#1 <secret:1>", "get#1"):
        assert relabel(untouched, labels) == untouched
