"""Templates of results: placeholders take values with their types, nothing else is touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.faults.template import MISSING, TemplateError, check_template, fill, look_up, put

MADE = {"n": lambda: 3, "key": lambda: None, "new_id": lambda: "ab12"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab{}/", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=3), inner, max_size=3),
)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{/amount}", 500),
        ("{/gone}", None),
        ("charge of {/amount} for {/who}", "charge of 500 for ada"),
        ("{/gone} left out", " left out"),
        ("{/items/1}", "b"),
        ("{/items/9}", None),
        ("call {n}: {new_id}", "call 3: ab12"),
        ("{key}", None),
        ("{{literal}}", "{literal}"),
        ("{{{n}}}", "{3}"),
        ({"a": ["{n}", 1, True, None]}, {"a": [3, 1, True, None]}),
        ("{}", {"amount": 500, "who": "ada", "items": ["a", "b"]}),
    ],
)
def test_placeholders(template: object, value: object) -> None:
    check_template(template)
    assert fill(template, {"amount": 500, "who": "ada", "items": ["a", "b"]}, MADE) == value


@pytest.mark.parametrize(("template", "at"), [({"a": ["x", "{who}"]}, ("a", 1)), ("{n", ()), ("n}", ()), ("{ n}", ())])
def test_a_placeholder_that_means_nothing_is_found(template: object, at: tuple[object, ...]) -> None:
    with pytest.raises(TemplateError) as caught:
        check_template(template)
    assert caught.value.at == at


@given(JSON)
def test_a_template_is_refused_or_can_be_filled(template: object) -> None:
    try:
        check_template(template)
    except TemplateError:
        return
    fill(template, {}, {**MADE, "new_uuid": str, "now": str})


@given(JSON, st.sampled_from(["/a", "/b/a", "/0", "/a~1b"]))
def test_what_is_put_is_found_and_the_original_is_untouched(value: object, pointer: str) -> None:
    before = repr(value)
    changed = put(value, pointer, "new")
    assert repr(value) == before
    assert look_up(changed, pointer) == "new" or changed == value
    assert look_up(put(value, "/a", MISSING), "/a") is MISSING
