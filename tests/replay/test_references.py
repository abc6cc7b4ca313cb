"""References to results, in arguments and texts."""

import pytest

from goldentrace.replay.references import ReferenceMissingError, holds_reference, resolve, resolve_text

RESULTS = {
    ("get_order", 1): '{"id":"ord_1","lines":[{"sku":"A","n":2}],"a/b":{"~":true},"none":null}',
    ("read", 1): "plain text",
}


def lookup(tool: str, number: int) -> str:
    if (tool, number) not in RESULTS:
        raise ReferenceMissingError("no such result so far")
    return RESULTS[tool, number]


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("<get_order#1/id>", "ord_1"),
        ("<get_order#1/lines/0>", {"sku": "A", "n": 2}),
        ("<get_order#1/lines/0/n>", 2),
        ("<get_order#1/a~1b/~0>", True),
        ("<get_order#1/none>", None),
        ("<read#1>", "plain text"),
        ("order <get_order#1/id>, <get_order#1/lines/0/n> pieces", "order ord_1, 2 pieces"),
        ({"a": ["<get_order#1/id>", 5], "<get_order#1/id>": "key"}, {"a": ["ord_1", 5], "<get_order#1/id>": "key"}),
        ("<b>no reference</b> <x#0> #1 <get_order>", "<b>no reference</b> <x#0> #1 <get_order>"),
        (5, 5),
    ],
)
def test_references_become_values(value: object, resolved: object) -> None:
    assert resolve(value, lookup) == resolved


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<get_order#2/id>", "no such result"),
        ("<get_order#1/nothing>", "no such place"),
        ("<get_order#1/lines/7>", "no such place"),
        ("<get_order#1/id/deeper>", "no such place"),
        ("<read#1/id>", "no JSON"),
    ],
)
def test_a_reference_to_nothing_is_an_error(text: str, what: str) -> None:
    for broken in (text, f"within {text} a text"):
        with pytest.raises(ReferenceMissingError, match=what):
            resolve(broken, lookup)
    with pytest.raises(ReferenceMissingError, match=what):
        resolve_text(text, lookup)


def test_a_value_tells_whether_it_holds_one() -> None:
    assert holds_reference({"a": [{"b": "x <t#1/y>"}]})
    assert holds_reference({"<t#1>": 1})
    assert not holds_reference({"a": ["<t#x>", 1, None]})
