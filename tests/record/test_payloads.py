"""What reaches the file of a value: plain JSON, equal for equal values, without secrets and without hidden reasoning."""

import dataclasses
import enum
import json
import math
import types
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.canonical import canonical, decode, digest
from goldentrace.errors import ConfigError
from goldentrace.model.profile import Redact, RedactionRule
from goldentrace.normalize.redact import Redactor
from goldentrace.record.payloads import MAX_DEPTH, Payloads, StoragePolicy, read_storage

KEY = "sk-proj-abcdefghijklmnopqrstuvwx"
OTHER_KEY = "sk-proj-zyxwvutsrqponmlkjihgfedc"


def written(value: Any, payloads: Payloads | None = None) -> Any:
    return decode((payloads or Payloads(StoragePolicy())).raw(value))


@dataclasses.dataclass
class Order:
    order_id: str
    lines: tuple[int, ...] = (1, 2)


class Colour(enum.Enum):
    RED = "red"


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Model:
    """As pydantic's models are."""

    def model_dump(self, *, mode: str) -> dict[str, str]:
        return {"mode": mode}


class BrokenModel:
    def model_dump(self, *, mode: str) -> dict[str, str]:
        raise RuntimeError(mode)


class Opaque:
    pass


NAME = f"<{__name__}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [True, None, 1.5, "x"]}, {"a": [True, None, 1.5, "x"], "b": 1}),
        (Order("o1"), {"order_id": "o1", "lines": [1, 2]}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (
            {1: "a", 2.5: "b", None: "c", False: "d", (1, 2): "e"},
            {"1": "a", "2.5": "b", "None": "c", "False": "d", "(1, 2)": "e"},
        ),
        ({"x", "a", "m"}, ["a", "m", "x"]),
        ({1, "a"}, ["a", 1]),
        (b"ab", "YWI="),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (Decimal("1.50"), "1.50"),
        (Colour.RED, "red"),
        (Text("x"), "x"),
        (Number(3), 3),
        ({Text("k"): Number(1)}, {"k": 1}),
        (PurePosixPath("/a/b"), "/a/b"),
        (ValueError("no"), "ValueError: no"),
        (Model(), {"mode": "json"}),
        (BrokenModel(), f"{NAME}.BrokenModel>"),
        (Opaque(), f"{NAME}.Opaque>"),
        (Opaque, f"{NAME}.Opaque>"),
        (math.nan, "nan"),
        ([math.inf, -math.inf, 1e400], ["inf", "-inf", "inf"]),
        (10**30, 10**30),
        (10**5000, "<integer of 16610 bits>"),
        ("half \ud83d", "half \ud83d"),
        ((item for item in (1, 2)), "<builtins.generator>"),
        (
            {None: {"order": Order("o"), "set": {1, None}, "key": types.MappingProxyType({2: Text("x")})}},
            {"None": {"order": {"order_id": "o", "lines": [1, 2]}, "set": [1, None], "key": {"2": "x"}}},
        ),
        (
            {None: (Number(1), Opaque(), {1: {None: "x"}, "y": math.nan})},
            {"None": [1, f"{NAME}.Opaque>", {"1": {"None": "x"}, "y": "nan"}]},
        ),
        (httpx.Response(200, stream=httpx.ByteStream(b"not read yet")), {"http_status": 200}),
        (httpx.Response(200, json={"a": 1}), {"http_status": 200, "body": {"a": 1}}),
        (httpx.Response(500, text="oops"), {"http_status": 500, "body": "oops"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_value_has_a_form(value: Any, expected: Any) -> None:
    assert written(value) == expected


def test_a_generator_is_not_used_up() -> None:
    items = iter([1, 2])
    written({"items": items})
    assert list(items) == [1, 2]


def test_a_value_that_holds_itself_or_nests_deeply_can_be_read_back() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert "nested too deeply" in json.dumps(written(loop))
    deep: Any = "bottom"
    for _ in range(5 * MAX_DEPTH):
        deep = [deep]
    assert "nested too deeply" in json.dumps(written(deep))
    shallow: Any = "bottom"
    for _ in range(MAX_DEPTH - 1):
        shallow = [shallow]
    assert "bottom" in json.dumps(written(shallow))


def test_many_containers_are_not_depth() -> None:
    wide = [{"n": number} for number in range(3 * MAX_DEPTH)]
    assert written(wide) == wide


def test_the_agents_own_value_is_left_alone() -> None:
    value = {"key": KEY, "thinking": [{"type": "thinking", "thinking": "hm"}], 1: {2, 3}}
    before = dict(value)
    written(value)
    assert value == before


KEYS = st.text().filter(lambda key: not key.startswith(("reasoning", "thinking")))  # what is hidden stays out
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(KEYS, children, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_json_is_recorded_as_it_is(value: Any) -> None:
    assert canonical(written(value)) == canonical(decode(canonical(value)))


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_a_secret_never_gets_through_and_equal_ones_stay_equal() -> None:
    payloads = Payloads(StoragePolicy())
    assert written({"key": KEY, "note": f"use {KEY} or {OTHER_KEY}"}, payloads) == {
        "key": "<secret:1>", "note": "use <secret:1> or <secret:2>",
    }  # fmt: skip
    assert payloads.text(f"again {OTHER_KEY}") == "again <secret:2>"
    assert written({KEY: 1}, payloads) == {"<secret:1>": 1}
    assert payloads.message("user", f"my key is {KEY}") == "my key is <secret:1>"


def test_a_telling_name_makes_any_text_a_secret() -> None:
    assert written({"password": "x", "passwords": "y", "nested": [{"api-key": ["z"]}]}) == {
        "nested": [{"api-key": ["<secret:1>"]}], "password": "<secret:2>", "passwords": "y",
    }  # fmt: skip


SECRETS = [KEY, OTHER_KEY, "Bearer abcdefghijklmnopqrst", "https://user:pa55@host.test/", "AKIAABCDEFGHIJKLMNOP"]
TEXTS = st.text(max_size=12) | st.sampled_from([*SECRETS, "token", "the key", "https://host.test/", "<secret:1>"])
NAMES = st.sampled_from(["password", "api_key", "Authorization", "idempotency_key", "url", "key", "x", *SECRETS[:1]])
MIXED = st.recursive(
    TEXTS | st.integers() | st.builds("{} {}".format, TEXTS, TEXTS),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(NAMES, children, max_size=4),
    max_leaves=12,
)


@given(st.lists(MIXED, min_size=1, max_size=4))
def test_the_fast_way_finds_what_the_detectors_find(values: list[Any]) -> None:
    payloads, redactor, numbers = Payloads(StoragePolicy()), Redactor(), dict[str, int]()
    for value in values:
        ordered = decode(canonical(value))  # numbers are given in the order of the sorted keys
        assert written(value, payloads) == redactor.redact_value(ordered, numbers)


def test_the_users_rules_count_too() -> None:
    rules = [RedactionRule(name="card", pattern=r"\b\d{16}\b"), RedactionRule(name="test key", allow=KEY)]
    payloads = Payloads(StoragePolicy(redact=Redact(rules=rules)))
    assert written(["4111111111111111", KEY, OTHER_KEY], payloads) == ["<secret:1>", KEY, "<secret:2>"]


def test_the_agents_own_redaction_is_applied_beside_the_detectors() -> None:
    def hide(value: Any) -> Any:
        return {**value, "name": "-"} if isinstance(value, dict) else value

    payloads = Payloads(StoragePolicy(), hide)
    assert written({"name": "Ada", "key": KEY}, payloads) == {"name": "-", "key": "<secret:1>"}
    assert written(Order("o1"), payloads) == {"order_id": "o1", "lines": [1, 2], "name": "-"}


# --- hidden reasoning ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "hi"}], [{"type": "text", "text": "hi"}]),
        ([{"type": "redacted_thinking", "data": "…"}], []),
        ({"output": [{"type": "reasoning", "summary": [], "encrypted_content": "…"}]}, {"output": []}),
        ({"role": "assistant", "content": "hi", "reasoning_content": "hm"}, {"role": "assistant", "content": "hi"}),
        ({"block": {"type": "thinking", "thinking": "hm"}}, {}),
        ({"type": "thinking"}, {"type": "thinking"}),
        ({"topic": "reasoning", "thinking": "a word"}, {"topic": "reasoning", "thinking": "a word"}),
    ],
)  # fmt: skip
def test_hidden_reasoning_is_dropped_from_values(value: Any, left: Any) -> None:
    assert written(value) == left


@pytest.mark.parametrize(
    ("role", "content", "text"),
    [
        ("user", "hello", "hello"),
        ("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}], "hi"),
        ("assistant", [{"type": "text", "text": "a"}, {"type": "image", "source": {}}, {"text": "b"}], "a\nb"),
        ("assistant", {"role": "assistant", "content": [{"type": "output_text", "text": "c"}]}, "c"),
        ("assistant", 7, ""),
        ("reasoning", "hm", None),
        ("thinking", [{"text": "hm"}], None),
    ],
)
def test_of_a_message_only_its_text_is_taken(role: str, content: Any, text: str | None) -> None:
    assert Payloads(StoragePolicy()).message(role, content) == text


# --- what may be stored ----------------------------------------------------------------------------------------------


def test_results_by_digest_are_equal_for_equal_values() -> None:
    payloads = Payloads(StoragePolicy(results="hash"))
    first, second = payloads.result({"a": 1.0, "b": 2}), payloads.result({"b": 2, "a": 1})
    assert bytes(first.value) == b""
    assert first.digest == second.digest == digest(canonical({"a": 1, "b": 2}), 16)
    assert first.size_bytes == len(b'{"a":1.0,"b":2}')
    assert payloads.result({"a": 2, "b": 2}).digest != first.digest


def test_messages_may_be_left_out() -> None:
    assert Payloads(StoragePolicy(messages="drop")).message("user", "hello") is None


def test_what_may_be_stored_is_read_from_the_environment() -> None:
    assert read_storage(None) == read_storage("") == StoragePolicy()
    text = '{"results": "hash", "messages": "drop", "redact": {"rules": [{"name": "n", "pattern": "x"}]}}'
    stored = read_storage(text)
    assert (stored.results, stored.messages, stored.redact.rules[0].pattern) == ("hash", "drop", "x")


@pytest.mark.parametrize("text", ["{", "[]", '{"results": "maybe"}', '{"result": "hash"}'])
def test_a_wrong_setting_is_an_error_not_a_guess(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_storage(text)
    assert str(caught.value.where) == "GOLDENTRACE_RECORD"


def test_a_struct_of_the_agents_own_is_plain_too() -> None:
    class Point(msgspec.Struct):
        x: int

    assert written([Point(1)]) == [{"x": 1}]


@pytest.mark.parametrize("key", ["pattern", "allow"])
def test_a_pattern_of_the_storage_that_is_none_is_refused_before_the_run(key: str) -> None:
    text = json.dumps({"redact": {"rules": [{"name": "own", key: "("}]}})
    with pytest.raises(ConfigError, match="not a regular expression") as caught:
        read_storage(text)
    assert str(caught.value.where) == "GOLDENTRACE_RECORD $.redact.rules: own"
