"""Secrets: each detector with what it finds and a near miss, keys that tell, and the user's own rules."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.model.event import Approval
from goldentrace.model.profile import Redact, RedactionRule
from goldentrace.normalize.redact import _SHAPES, Redactor, _matches, is_secret_key
from tests.traces import Run, args_of, normal

BASE64 = "eyJhbGciOiJIUzI1NiJ9"


def found(text: str, settings: Redact | None = None, key: str | None = None) -> list[tuple[str, str]]:
    redactor = Redactor(settings)
    spans = redactor.find(text, key)
    assert all(text[start:end] == token.text for start, end, token in spans)
    if spans and key is None:
        assert redactor.is_suspect(text)
    return [(token.text, token.rule) for _, _, token in spans]


@pytest.mark.parametrize(
    ("secret", "rule"),
    [
        ("sk-" + "a1" * 10, "provider-key"),
        ("sk-proj-" + "a_-1" * 8, "provider-key"),
        ("sk_live_" + "a1" * 8, "provider-key"),
        ("rk_test_" + "a1" * 8, "provider-key"),
        ("ghp_" + "a1" * 15, "provider-key"),
        ("ghs_" + "a1" * 18, "provider-key"),
        ("github_pat_" + "a1_" * 8, "provider-key"),
        ("glpat-" + "a1" * 10, "provider-key"),
        ("AKIA" + "A1" * 8, "provider-key"),
        ("ASIA" + "Z9" * 8, "provider-key"),
        ("AIza" + "a1_-x" * 7, "provider-key"),
        ("xoxb-" + "1a-2" * 4, "provider-key"),
        ("hf_" + "aB" * 16, "provider-key"),
        ("gsk_" + "aB" * 20, "provider-key"),
        ("npm_" + "aB" * 18, "provider-key"),
        ("lsv2_pt_" + "a1" * 16, "provider-key"),
        ("SG." + "a1" * 11 + "." + "b2" * 20, "provider-key"),
        ("pypi-" + "aB1" * 20, "provider-key"),
        (BASE64 + "." + "eyJzdWIiOiIxIn0" + "." + "c2ln", "jwt"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", "private-key"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE cut off", "private-key"),
    ],
)
def test_a_secret_is_found_alone_and_inside_text(secret: str, rule: str) -> None:
    whole = [(secret, f"redact/{rule}")]
    assert found(secret) == whole
    assert found(f"see ({secret}") == whole
    if rule != "private-key" or "END" in secret:
        assert found(f'{{"k": "{secret}"}}') == whole
        assert found(f"{secret} and {secret}") == whole * 2
        assert found(f"x{secret}") == (whole if rule == "private-key" else [])


@pytest.mark.parametrize(
    ("text", "secret", "rule"),
    [
        ("Authorization: Bearer abcdefghijklmnop==", "abcdefghijklmnop==", "bearer"),
        ("authorization: basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA==", "bearer"),
        ("Cookie: a=1; b=2\r\nHost: x", "a=1; b=2", "cookie"),
        ("set-cookie: id=abc", "id=abc", "cookie"),
        ("X-Api-Key: abcd1234", "abcd1234", "auth-header"),
        ("api-key: abcd1234", "abcd1234", "auth-header"),
        ("postgres://ann:hunter2@db/x", "hunter2", "url-password"),
        ("redis://:hunter2@cache", "hunter2", "url-password"),
    ],
)
def test_of_headers_and_urls_the_secret_part_is_found(text: str, secret: str, rule: str) -> None:
    assert found(text) == [(secret, f"redact/{rule}")]


@pytest.mark.parametrize(
    "text",
    [
        "sk-" + "a1" * 9, "task-" + "a1" * 12, "sk_prod_" + "a1" * 8, "sk_live_" + "a1" * 7, "ghx_" + "a1" * 20,
        "ghp_" + "a1" * 14, "github_pat_short", "glpat-" + "a1" * 9, "AKIA" + "A1" * 7, "AKIA" + "A1" * 8 + "B",
        "akia" + "a1" * 8, "AIza" + "a" * 34, "xoxz-" + "1a" * 8, "xoxb-123", "hf_short", "npm_install", "lsv2_zz_" + "a1" * 16,
        "SG.short.short", "pypi-package", BASE64, BASE64 + ".payload.x", "-----BEGIN PUBLIC KEY-----\nMIIB",
        "bearer short", "the bearer of this", "Bearer abcdefghijklmnopqrstuv", "forbearer abcdefghijklmnopqrst1", "basics abcdefghijklmnopqrst1", "cookies are fine",
        "x-api-key: short", "https://example.org/a:b@c", "https://ann@example.org", "http://host:8080/x", "mailto:a@b",
        "0f8fad5b-d9cb-469f-a165-708677289501", "token", "password",
    ],
)  # fmt: skip
def test_a_near_miss_is_no_secret(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "key", ["password", "Password", "API_KEY", "api-key", "x-api-key", "apiKey", "Client-Secret", "Set-Cookie", "accessJwt"]
)  # fmt: skip
def test_any_text_under_a_telling_key_is_a_secret(key: str) -> None:
    assert is_secret_key(key)
    assert found("x", key=key) == [("x", "redact/secret-key")]
    assert found("", key=key) == []
    assert list(args_of(Run().call("t", {key: "hunter2"}).end()).values()) == ["<secret:1>"]


@pytest.mark.parametrize(
    "key", ["passwords", "my_password", "token_count", "key", "secretary", "api", "max_tokens", ""]
)
def test_another_key_tells_nothing(key: str) -> None:
    assert not is_secret_key(key)
    assert found("x", key=key) == []


def test_keys_of_a_document_within_a_text_tell_of_its_secrets() -> None:
    text = '{"password": "hunter2", "inner": "{\\"api_key\\": \\"t-1\\"}", "n": 1}'
    clean = Redactor().redact_value({"content": text, "plain": '{"a": [1, 2]}', "no json": '{"password": "x"'}, {})
    assert clean == {
        "content": '{"password":"<secret:1>","inner":"{\\"api_key\\":\\"<secret:2>\\"}","n":1}',
        "plain": '{"a": [1, 2]}',
        "no json": '{"password": "x"',
    }
    assert Redactor().redact_value(clean, {}) == clean


def test_reasons_and_who_allowed_a_call_are_written_without_secrets() -> None:
    told = "401 for ghp_" + "a1" * 15
    run = Run().call("read", status="error").decide("retry", "c1", reason=told)
    run.add(Approval, call_id="c1", verdict="denied", by=told).decide("abort", reason=told)
    written = normal(run.end())
    (operation,) = written.operations
    clean = "401 for <secret:1>"
    assert [step.reason for step in operation.decisions] == [clean]
    assert [step.by for step in operation.approvals] == [clean]
    assert [event.fields["reason"] for event in written.loose] == [clean]


def test_a_key_tells_of_the_texts_in_a_list_and_of_no_number() -> None:
    args = args_of(Run().call("t", {"password": ["a", "b", "a"], "secret": 1234}).end())
    assert (args["/password/0"], args["/password/1"], args["/password/2"]) == ("<secret:1>", "<secret:2>", "<secret:1>")
    assert args["/secret"].startswith("int h:")


def rules(*entries: dict[str, str], builtin: bool = True) -> Redact:
    return Redact(builtin=builtin, rules=[RedactionRule(**entry) for entry in entries])


def test_the_users_own_secrets_are_found_beside_the_built_in_ones() -> None:
    own = rules({"name": "badge", "pattern": r"B-\d{4}"})
    assert found("B-1234 sk-" + "a1" * 10, own) == [
        ("B-1234", "redact/badge"),
        ("sk-" + "a1" * 10, "redact/provider-key"),
    ]
    assert found("B-12", own) == []
    assert Redactor(own).is_suspect("anything")
    args = args_of(
        Run().call("t", {"a": "for B-1234"}).end(),
        profile={"redact": {"rules": [{"name": "b", "pattern": r"B-\d{4}"}]}},
    )
    assert args["/a"].endswith(" <secret:1>")


def test_of_overlapping_secrets_the_first_counts_and_an_empty_match_is_none() -> None:
    own = rules(
        {"name": "one", "pattern": "abcd"}, {"name": "two", "pattern": "cdef"}, {"name": "none", "pattern": "x*"}
    )
    assert found("abcdef", own) == [("abcd", "redact/one")]


def test_what_a_user_allows_is_no_secret_and_only_that() -> None:
    key, other = "sk-" + "a1" * 10, "sk-" + "b2" * 10
    allowed = rules({"name": "public", "allow": "sk-a1.*"})
    assert found(key, allowed) == []
    assert found(other, allowed) == [(other, "redact/provider-key")]
    assert found("guest", rules({"name": "demo", "allow": "guest"}), key="password") == []
    assert found("guests", rules({"name": "demo", "allow": "guest"}), key="password") == [
        ("guests", "redact/secret-key")
    ]


def test_without_the_built_in_list_only_the_users_own_count() -> None:
    key = "sk-" + "a1" * 10
    assert found(key, Redact(builtin=False)) == []
    assert found("x", Redact(builtin=False), key="password") == []
    assert not Redactor(Redact(builtin=False)).is_suspect(key)
    assert Redactor(Redact(builtin=False)).marks_in(key.encode()) == ()
    assert found(f"{key} B1", rules({"name": "b", "pattern": "B1"}, builtin=False)) == [("B1", "redact/b")]


def test_marks_are_the_literals_that_a_secret_needs() -> None:
    assert set(Redactor().marks_in(b"SK-x and a Bearer abcdefghijklmnop")) == {"sk-", "bearer"}
    assert set(Redactor().marks_in(b"a basic token of thanks")) == {"token"}
    assert Redactor().marks_in(b"plain text") == ()


_ALTERNATION = re.compile(
    "|".join(f"(?P<s{n}>{shape.pattern.replace('?P<secret>', '')})" for n, shape in enumerate(_SHAPES))
)
_PARTS = (
    "sk-", "a1" * 10, "_live_", "sk_", "ghp_", "b2" * 16, "AKIA", "A1" * 8, "eyJ", ".", "-----BEGIN ", "PRIVATE KEY-----",
    "bearer", "Basic ", "Cookie:", "authorization: ", "x-api-key:", "https", "://", "ann", ":", "@", "/", '"', " ", "\n",
    "é",
)  # fmt: skip


@given(st.lists(st.sampled_from(_PARTS), max_size=12).map("".join))
def test_shapes_searched_one_by_one_give_what_one_alternation_of_them_gives(text: str) -> None:
    wanted = [(_SHAPES[int(_whole(m)[1:])].name, m.span()) for m in _ALTERNATION.finditer(text)]
    assert [(name, match.span()) for name, match in _matches(text)] == wanted


def _whole(match: re.Match[str]) -> str:
    return next(name for name, value in match.groupdict().items() if value is not None)


SECRET = "sk-" + "a1" * 10
JSON = st.recursive(
    st.none()
    | st.integers()
    | st.sampled_from([SECRET, "plain", f"use {SECRET} now", "Bearer " + "x1" * 10 + "1", "<secret:1>"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "password", SECRET]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_a_redacted_value_holds_no_secret_and_is_not_redacted_again(value: Any) -> None:
    redactor = Redactor()
    numbers: dict[str, int] = {}
    once = redactor.redact_value(value, numbers)
    assert not re.search(SECRET + "|(?:x1){10}", repr(once))
    again = dict(numbers)
    assert redactor.redact_value(once, again) == once
    assert again == numbers
    assert (once == value) or numbers or "<secret:" in repr(value)


def test_equal_secrets_have_equal_numbers_over_one_run() -> None:
    redactor, numbers = Redactor(), dict[str, int]()
    assert redactor.redact_text(f"{SECRET} b", numbers) == "<secret:1> b"
    assert redactor.redact_value({"password": ("p", SECRET)}, numbers) == {"password": ["<secret:2>", "<secret:1>"]}
    assert redactor.redact_text("Bearer <secret:1>" + "x" * 15 + "1", numbers) == "Bearer <secret:1>" + "x" * 15 + "1"
    assert redactor.redact_text("Cookie: <secret:1>", numbers) == "Cookie: <secret:1>"
    assert redactor.redact_text("plain", numbers) == "plain"
    assert numbers == {SECRET: 1, "p": 2}
