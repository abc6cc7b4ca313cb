"""YAML with lines: every value where it stands, nothing that JSON has no form for, no bomb."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.errors import ConfigError
from goldentrace.faults.marks import MAX_DEPTH, MAX_NODES, read_marked


def error_of(text: bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_marked(text, "plan.yaml")
    return caught.value


def test_every_key_and_item_knows_its_line() -> None:
    marked = read_marked(b"a: 1\nb:\n  - x\n  - {c: 2}\n", "plan.yaml")
    assert marked.value == {"a": 1, "b": ["x", {"c": 2}]}
    assert marked.where(("a",)).line == 1
    assert marked.where(("b",)).line == 2
    assert marked.where(("b", 0)).line == 3
    assert marked.where(("b", 1, "c")).line == 4


def test_what_has_no_line_takes_that_of_its_container() -> None:
    marked = read_marked(b"a: 1\nb:\n  c: 2\n", "plan.yaml")
    assert (marked.where(("b", "gone")).line, marked.where(("b", "gone")).pointer) == (2, "$.b.gone")


def test_merge_keys_take_the_first_and_the_own_value_wins() -> None:
    text = b"x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz:\n  <<: [*x, *y]\n  a: 3\n"
    assert read_marked(text, "p").value["z"] == {"a": 3, "b": 1, "c": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"a: 12:30\n", "12:30"),  # YAML 1.1 would read 750
        (b"a: 2024-01-02\n", "2024-01-02"),
        (b"429: x\n", None),
    ],
)
def test_what_yaml_reads_otherwise_than_a_person_stays_text(text: bytes, value: object) -> None:
    found = read_marked(text, "p").value
    assert found == ({"a": value} if value else {"429": "x"})


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        (b"a: .inf\n", "not JSON", 1),
        (b"a: 1\nb: [1\n", "not YAML", 3),
        (b"a: 1\non: 2\n", "a key that is no text", 2),
        (b"a: 1\nb: 1\na: 2\n", "'a' stands twice", 3),
        (b"x: &a [*a]\n", "contains itself", 1),
        (b"a: !!python/object:os.system x\n", "no form in JSON", 1),
        (b"a: !!binary aGk=\n", "no form in JSON", 1),
        (b"a: 1\n---\nb: 2\n", "another document", 2),
        (b"a: *gone\n", "undefined alias", 1),
        (b"? {a: 1}\n: 2\n", "a key that is no text", 1),
        (b"", "empty", None),
        (b"a: \x00\n", "not YAML", None),
    ],
)
def test_bad_yaml_names_its_line(text: bytes, what: str, line: int | None) -> None:
    error = error_of(text)
    assert what in error.what
    assert error.where is not None
    assert error.where.line == line
    assert error.next_step


def test_bytes_that_are_no_utf8_are_named_by_offset() -> None:
    error = error_of(b"a: \xff\n")
    assert error.where is not None
    assert error.where.byte == 3


@pytest.mark.parametrize("shape", ["[{}]", "{{k: {}}}"])
def test_aliases_cannot_grow_beyond_their_bound(shape: str) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert f"more than {MAX_NODES}" in error_of("\n".join(rows).encode()).what


def test_nesting_is_bounded_before_anything_recurses() -> None:
    assert read_marked(b"a: " + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1), "p").value
    assert "nested" in error_of(b"a: " + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH).what
    assert "nest" in error_of(b"[" * 200_000).what


@given(st.binary(max_size=200) | st.text(alphabet="ab:-[]{}&*!<|> \n'\"#%@0.~?", max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_shape(data: bytes) -> None:
    try:
        marked = read_marked(data, "p")
    except ConfigError as error:
        assert error.what
        assert error.where is not None
    else:
        assert marked.lines
