"""YAML that becomes JSON: what would surprise is refused or stays text, and nothing makes it hang."""

import pytest

from goldentrace.errors import ConfigError
from goldentrace.replay.yaml_document import read_document


def test_every_value_has_its_line() -> None:
    document = read_document(b"a:\n  - b\n  -\n    c: 1\n", "x.yaml")
    assert document.value == {"a": ["b", {"c": 1}]}
    assert {pointer: line for pointer, line in document.lines.items() if pointer} == {
        "/a": 2, "/a/0": 2, "/a/1": 4, "/a/1/c": 4,
    }  # fmt: skip


def test_dates_stay_text() -> None:
    assert read_document(b"{a: 2026-01-02, b: 2026-01-02T03:04:05Z}", "x").value == {
        "a": "2026-01-02", "b": "2026-01-02T03:04:05Z",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (b"a: 1\na: 2", 2, "'a' stands twice"),
        (b"a: .nan", 1, "no form for"),
        (b"a: .inf", 1, "no form for"),
        (b"a: !!python/object:os.system {}", 1, "tag 'python/object:os.system'"),
        (b"a: !own [1]", 1, "tag '!own'"),
        (b"a: !!set {b}", 1, "tag 'set'"),
        (b"a: !!binary aGk=", 1, "tag 'binary'"),
        (b"{[1]: 2}", 1, "no plain text"),
        (b"a: {<<: {b: 1}}", 1, "no plain text"),
        (b"a: [}", 1, "not YAML"),
        (b"a: b: c", 1, "not YAML"),
        (b"a: 1\nb: \xff", 2, "not UTF-8"),
        (b"a: 1\n---\nb: 2", 2, "not YAML"),
        (b"a: *b", 1, "not YAML"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_with_its_line(data: bytes, line: int, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_document(data, "x.yaml")
    assert what in caught.value.what
    assert caught.value.where is not None
    assert caught.value.where.line == line


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="aliases counted"):
        read_document("\n".join(lines).encode(), "x")


def test_an_alias_that_holds_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match="nested"):
        read_document(b"a: &a [*a]", "x")


def test_depth_and_size_are_bounded() -> None:
    with pytest.raises(ConfigError, match="nested"):
        read_document(b"[" * 150 + b"]" * 150, "x")
    with pytest.raises(ConfigError, match="larger than"):
        read_document(b" " * (5 << 20), "x")
