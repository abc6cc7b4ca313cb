"""The verdict on the ledger: counts and values without tolerance."""

from goldentrace.codec.canonical import encode_raw
from goldentrace.faults.verify import EffectDifference, effects_of, verify
from goldentrace.model.event import Effect, ModelTurn


def test_as_expected() -> None:
    verdict = verify({"charge": 1, "refund": 0}, [("charge", 500), ("mail", "x")])
    assert verdict.is_ok
    assert verdict.counts == {"charge": 1, "mail": 1}


def test_one_too_many_and_one_missing() -> None:
    verdict = verify({"charge": 1, "mail": 1}, [("charge", 500), ("charge", 500)])
    assert verdict.differences == (EffectDifference("charge", 1, 2), EffectDifference("mail", 1, 0))


def test_values_are_compared_in_any_order_and_with_their_numbers() -> None:
    assert verify({"charge": [500, 20]}, [("charge", 20.0), ("charge", 500)]).is_ok
    assert verify({"charge": [500]}, [("charge", 5000)]).differences == (EffectDifference("charge", [500], [5000]),)
    assert not verify({"charge": [500]}, [("charge", "500")]).is_ok
    assert not verify({"charge": [500]}, [("charge", 500), ("charge", 500)]).is_ok


def test_effects_are_read_from_events() -> None:
    events = [ModelTurn(turn=1), Effect(name="charge", value=encode_raw(500)), Effect(name="mail")]
    assert effects_of(events) == [("charge", 500), ("mail", None)]
