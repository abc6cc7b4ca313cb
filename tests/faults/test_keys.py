"""Idempotency keys: a retry has the same key by itself, anything else has another."""

from hypothesis import given
from hypothesis import strategies as st

from goldentrace.faults import idempotency_key
from goldentrace.normalize.ids import id_values

ARGS = {"amount_cents": 500, "card": {"last4": "4242", "country": "de"}}


def test_a_retry_has_the_same_key_however_its_arguments_are_written() -> None:
    again = {"card": {"country": "de", "last4": "4242"}, "amount_cents": 500.0}
    assert idempotency_key("charge", 1, "req-1", ARGS) == idempotency_key("charge", 1, "req-1", again)


def test_anything_else_has_another_key() -> None:
    keys = {
        idempotency_key("charge", 1, "req-1", ARGS),
        idempotency_key("charge", 2, "req-1", ARGS),
        idempotency_key("charge", 1, "req-2", ARGS),
        idempotency_key("refund", 1, "req-1", ARGS),
        idempotency_key("charge", 1, "req-1", {**ARGS, "amount_cents": 501}),
        idempotency_key("charge", 1, "req-1", {**ARGS, "amount_cents": "500"}),
    }
    assert len(keys) == 6


def test_parts_cannot_run_into_each_other() -> None:
    assert idempotency_key("a", "bc", "d", {}) != idempotency_key("ab", "c", "d", {})


@given(st.integers(min_value=0, max_value=10**6))
def test_a_key_is_seen_as_an_id_by_its_shape(operation: int) -> None:
    key = idempotency_key("charge", operation, "req", ARGS)
    assert len(key) == 32
    assert f"hex:{key}" in id_values(f'{{"key":"{key}"}}'.encode())
