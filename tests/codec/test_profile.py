"""Profiles as text: `extends`, unknown keys, the digest over what alters normalization."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.profile import profile_hash, read_profile
from goldentrace.errors import ConfigError
from goldentrace.model.profile import Profile
from tests.cli.refusal import error_of

FILES = {
    "base@1": "name: base@1\nids: {keys: [a], ignore_keys: [b]}\ntools: {t: {access: read, polling: true}}\n",
    "mid@1": "name: mid@1\nextends: base@1\nids: {keys: [c]}\ntools: {t: {access: write}, u: {access: read}}\n",
    "loop@1": "name: loop@1\nextends: pool@1\n",
    "pool@1": "name: pool@1\nextends: loop@1\n",
}


def find(name: str) -> tuple[bytes, str] | None:
    return (FILES[name].encode(), f"{name}.yaml") if name in FILES else None


def test_mappings_merge_key_by_key_and_the_rest_replaces() -> None:
    found = read_profile(b"name: top@1\nextends: mid@1\nids: {ignore_keys: []}\n", "top@1.yaml", find)
    assert (found.name, found.ids.keys, found.ids.ignore_keys) == ("top@1", ["c"], [])
    assert (found.tools["t"].access, found.tools["t"].polling, found.tools["u"].access) == ("write", True, "read")


def test_what_is_extended_must_be_there_and_end() -> None:
    with pytest.raises(ConfigError, match="no profile 'nope@1'") as caught:
        read_profile(b"name: top@1\nextends: nope@1\n", "top@1.yaml", find)
    assert str(caught.value.where) == "top@1.yaml:2 $.extends"
    with pytest.raises(ConfigError, match="in a circle"):
        read_profile(b"name: top@1\nextends: loop@1\n", "top@1.yaml", find)
    with pytest.raises(ConfigError, match="in a circle"):
        read_profile(b"name: top@1\nextends: top@1\n", "top@1.yaml", find)


@pytest.mark.parametrize(
    ("text", "what", "where", "hint"),
    [
        ("nam: x", "unknown key 'nam'", "p.yaml:1 $.nam", "did you mean name?"),
        ("ids: {}", "'name' is missing", "p.yaml:1", "name: …"),
        (
            "name: x\narguments:\n  ignor: [a]",
            "unknown key 'ignor'",
            "p.yaml:3 $.arguments.ignor",
            "did you mean ignore?",
        ),
        ("name: x\ntools: {t: {acces: read}}", "unknown key", "p.yaml:2 $.tools.t.acces", "did you mean access?"),
        ("name: x\ntools: {t: {access: reed}}", "'reed'", "p.yaml:2 $.tools.t.access", "did you mean read?"),
        ("name: x\nids: [a]", "must be a mapping, not a list", "p.yaml:2 $.ids", ""),
        ("name: x\narguments: {max_leaves: many}", "expected int", "p.yaml:2 $.arguments.max_leaves", ""),
        ("name: x\narguments: {max_leaves: true}", "expected int", "p.yaml:2 $.arguments.max_leaves", ""),
        ("name: [x]", "expected str", "p.yaml:1 $.name", ""),
        ("name: x\nredact: {rules: [{pattern: a}]}", "'name' is missing", "p.yaml:2 $.redact.rules[0]", ""),
    ],
)
def test_a_wrong_profile_names_its_line(text: str, what: str, where: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_profile(text.encode(), "p.yaml")
    assert what in caught.value.what
    assert str(caught.value.where) == where
    assert hint in caught.value.next_step


@pytest.mark.parametrize(
    "text",
    [
        "compare: {parallel_order: strict, severities: {GT101: note}}",
        "backoff: {policy: openai}",
        "rules: {GT1101: {times: 3}}",
        "tools: {t: {access: write, destructive: true, resource: 'a:{b}', backoff: {policy: none}}}",
    ],
)
def test_what_alters_no_digest_leaves_the_hash(text: str) -> None:
    plain = read_profile(b"name: x\n", "x.yaml")
    assert profile_hash(read_profile(f"name: x\n{text}\n".encode(), "x.yaml")) == profile_hash(plain)


@pytest.mark.parametrize(
    "text",
    [
        "ids: {keys: [a]}",
        "ids: {kinds: none}",
        "paths: {home: false}",
        "time: {keep: all}",
        "arguments: {equivalence: semantic}",
        "arguments: {ignore: [a]}",
        "arguments: {max_leaves: 3}",
        "results: {compare: digest}",
        "redact: {builtin: false}",
        "tools: {t: {ignore: [a]}}",
        "tools: {t: {results: keep}}",
        "tools: {t: {reconciles: u}}",
    ],
)
def test_what_alters_a_digest_changes_the_hash(text: str) -> None:
    plain = read_profile(b"name: x\n", "x.yaml")
    assert profile_hash(read_profile(f"name: x\n{text}\n".encode(), "x.yaml")) != profile_hash(plain)


def test_the_name_is_no_part_of_the_hash() -> None:
    assert profile_hash(Profile(name="a@1")) == profile_hash(Profile(name="b@1"))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_profile_or_an_error_of_ours(data: bytes) -> None:
    error = error_of(lambda: read_profile(data, "p.yaml", find))
    assert error is None or error.where is not None
