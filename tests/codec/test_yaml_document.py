"""YAML with places: what is read, what is refused, and where each value stands."""

from typing import Any, Literal

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.yaml_document import read_yaml, show_pointer, suggest
from goldentrace.errors import ConfigError
from tests.cli.refusal import error_of


def read(text: str, **limits: int) -> Any:
    return read_yaml(text.encode(), "f.yaml", **limits).value


def refused(text: str | bytes, **limits: int) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_yaml(text if isinstance(text, bytes) else text.encode(), "f.yaml", **limits)
    return caught.value


def test_lines_of_keys_and_items() -> None:
    document = read_yaml(b"a:\n  b: 1\n  c/d:\n    - x\n    - {e: 2}\n", "f.yaml")
    assert document.value == {"a": {"b": 1, "c/d": ["x", {"e": 2}]}}
    assert {p: n for p, n in document.lines.items() if p} == {
        "/a": 1, "/a/b": 2, "/a/c~1d": 3, "/a/c~1d/0": 4, "/a/c~1d/1": 5, "/a/c~1d/1/e": 5,
    }  # fmt: skip
    assert str(document.where("/a/c~1d/1/e/f")) == "f.yaml:5 $.a['c/d'][1].e.f"


def test_what_json_has_no_form_for_stays_text_or_is_refused() -> None:
    assert read("a: 2026-03-01\nb: 12:30\nc: 0x10\nd: .5\ne: ~\nf: yes\ng: 2026-03-01T10:00:00Z\n") == {
        "a": "2026-03-01", "b": "12:30", "c": 16, "d": 0.5, "e": None, "f": True, "g": "2026-03-01T10:00:00Z",
    }  # fmt: skip
    assert "no number" in refused("a: .inf").what
    assert "tag" in refused("a: !!binary aGk=").what
    assert "tag" in refused("a: !!python/object/apply:os.system [ls]").what
    assert "tag" in refused("a: !!set {b}").what


def test_keys_are_text() -> None:
    assert read("429: a\non: b\n2026-03-01: c\n") == {"429": "a", "on": "b", "2026-03-01": "c"}
    assert "plain text" in refused("[a, b]: c").what
    assert "plain text" in refused("? {a: b}\n: c").what
    assert "plain text" in refused("1.5: c").what


def test_a_key_stands_once() -> None:
    error = refused("a:\n  b: 1\n  b: 2\n")
    assert (error.what, str(error.where)) == ("the key 'b' stands twice", "f.yaml:3 $.a.b")


def test_aliases_and_merges() -> None:
    assert read("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}\nd: {<<: [*a, {x: 3, z: 4}]}\n") == {
        "a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}, "d": {"x": 1, "z": 4},
    }  # fmt: skip
    assert "takes a mapping" in refused("a: {<<: [1]}").what


def test_bombs_are_refused_before_they_are_built() -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert "aliases counted" in refused("\n".join(["a0: &a0 [x]", *levels])).what
    assert "contains itself" in refused("a: &a [*a]").what
    assert "deeper than" in refused("[" * 500 + "]" * 500).what
    assert "depth" in refused("[" * 100_000 + "]" * 100_000).what  # the parser's own limit comes first
    assert "larger than" in refused("x" * 100, max_bytes=99).what
    assert "more than 3 values" in refused("[1, 2, 3]", max_values=3).what
    assert "deeper than 2" in refused("[[[1]]]", max_depth=2).what


def test_what_is_no_yaml_names_its_line() -> None:
    for text, line in (("a: [\n", 2), ("a: b: c\n", 1), ("a: 1\nb: @x\n", 2), ("a: 1\n---\nb: 2\n", 2)):
        error = refused(text)
        assert error.what.startswith("not YAML")
        assert error.where is not None
        assert error.where.line == line, text
    error = refused(b"a: 1\nb: \xff\n")
    assert (error.what, str(error.where)) == ("not UTF-8", "f.yaml:2")


def test_an_empty_file_is_none() -> None:
    assert read("") is None
    assert read("# only a comment\n") is None


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["one", "two"]
    count: int | None = None


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: dict[str, Inner] = {}
    either: str | list[Inner] = ""


def test_values_become_typed_and_errors_point_inside() -> None:
    good = read_yaml(b"inner: {a: {kind: one, count: 3}}\neither: [{kind: two}]\n", "f.yaml").convert(Outer)
    assert good == Outer({"a": Inner("one", 3)}, [Inner("two")])
    for text, where, step in (
        ("inner: {a: {kind: oen}}", "f.yaml:1 $.inner.a.kind", "did you mean one?"),
        ("inner: {a: {knd: one}}", "f.yaml:1 $.inner.a.knd", "did you mean kind?"),
        ("inner:\n  a: {}", "f.yaml:2 $.inner.a", "kind"),
        ("inner: {a: {kind: one, count: x}}", "f.yaml:1 $.inner.a.count", ""),
        ("either: [{kind: one}, {kind: two, kount: 1}]", "f.yaml:1 $.either[1].kount", "did you mean count?"),
        ("either: 5", "f.yaml:1 $.either", ""),
        ("inner: 5", "f.yaml:1 $.inner", ""),
    ):
        with pytest.raises(ConfigError) as caught:
            read_yaml(text.encode(), "f.yaml").convert(Outer)
        assert str(caught.value.where) == where
        assert step in caught.value.next_step


def test_pointers_and_suggestions_as_people_read_them() -> None:
    assert show_pointer("") == "$"
    assert show_pointer("/a/0/b-c/d.e/f~1g/h~0i") == "$.a[0].b-c['d.e']['f/g']['h~i']"
    assert suggest("goldns", ["goldens", "profile"]) == "did you mean goldens?"
    assert suggest("x", ["b", "a"]) == "known are a, b"


words = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="\ufeff"))
"""Without line breaks of Unicode, which the writer of this test's library folds."""


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | words, lambda v: st.lists(v) | st.dictionaries(words, v))
)
def test_what_was_dumped_is_read_back(value: Any) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    assert read_yaml(text.encode("utf-8", "surrogatepass"), "f.yaml").value == value


@given(st.text(max_size=80) | st.binary(max_size=80))
def test_anything_is_read_or_refused(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    error = error_of(lambda: read_yaml(data, "f.yaml"))
    assert error is None or error.where is not None
