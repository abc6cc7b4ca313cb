"""What a retry policy allows: the declared policy, the presets of real clients, and the band of the k-th wait.

A plain relative tolerance is unusable with jitter (two honest runs of one client differ by more than a halved wait
does), so the interval that a wait may lie in is computed from a declared policy. This module knows policies and numbers
only: it compares nothing, reads no file and draws no random number.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, get_args

from goldentrace.errors import Where
from goldentrace.match.declaration import Keys

PolicyName: TypeAlias = Literal[
    "openai", "anthropic", "google-genai", "urllib3", "httpx-retries", "tenacity", "stamina", "backoff", "standard",
    "custom", "none",
]  # fmt: skip
JitterKind: TypeAlias = Literal["none", "down", "symmetric", "full", "equal", "additive", "decorrelated"]
RetryAfterMode: TypeAlias = Literal["honour", "ignore", "abort"]
POLICY_NAMES: Final[tuple[PolicyName, ...]] = get_args(PolicyName)
JITTER_KINDS: Final[tuple[JitterKind, ...]] = get_args(JitterKind)
RETRY_AFTER_MODES: Final[tuple[RetryAfterMode, ...]] = get_args(RetryAfterMode)

LONGEST_MS: Final = 1e15
"""No wait is longer (30,000 years); keeps the arithmetic finite where a policy has no cap."""
DECORRELATED_GROWTH: Final = 3.0
"""A decorrelated wait is drawn up to three times the one before it (as in the AWS article that named the kind)."""


@dataclass(frozen=True, slots=True)
class Jitter:
    """How a client spreads its waits. amount: a ratio of 0 to 1 (down, symmetric) or ms (additive), else unused."""

    kind: JitterKind
    amount: float = 0.0

    @property
    def is_bounded(self) -> bool:
        """Does one wait bound another of the same policy from below and above?"""
        return self.kind not in ("full", "decorrelated") and not (
            self.kind in ("down", "symmetric") and self.amount >= 1
        )


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """What a client does with Retry-After.

    honour: waits at least that long; ignore: waits as if there were none; abort: makes no further attempt.
    abort_above_ms: makes none where more than that is owed. jitter: ratio that may be added to what is owed, never
    taken from it.
    """

    mode: RetryAfterMode = "honour"
    abort_above_ms: float | None = None
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How a client waits between attempts, and how exactly a run has to keep to it.

    The k-th wait (k = 1 before the second attempt) is min(cap_ms, base_ms * factor ** (k - 1)), the first one 0 if
    first_zero, spread by jitter; cap_ms None: no cap. jitter None: not declared, which `policy: none` alone may have.
    late_ms and early_ms: scheduling slack; absolute_ms and relative: the plain form, which replaces the band.
    max_attempts and max_elapsed_ms: what the client stops at, None where it has no such stop; known from presets only.
    place: where it was declared, for messages.
    """

    policy: PolicyName = "none"
    base_ms: float = 0.0
    factor: float = 2.0
    cap_ms: float | None = None
    first_zero: bool = False
    jitter: Jitter | None = None
    retry_after: RetryAfter = RetryAfter()
    late_ms: float = 250.0
    early_ms: float = 5.0
    absolute_ms: float | None = None
    relative: float | None = None
    max_attempts: int | None = None
    max_elapsed_ms: float | None = None
    place: str = field(default="", compare=False)

    @classmethod
    def from_mapping(cls, mapping: object, where: Where | None = None) -> "Policy":
        """Read the `backoff` mapping of a profile, a tool, a scenario or a golden's header.

        A named policy supplies its constants, explicit keys override them. Raises ConfigError for an unknown key or
        name, a wrong type, a number that is negative or not finite, and for keys that the policy cannot use.
        """
        keys = Keys(mapping, where, "backoff", _POLICY_KEYS)
        name = keys.choice("policy", POLICY_NAMES, "none")
        preset = PRESETS[name]
        if name == "none":
            keys.refuse(_FORMULA_KEYS, "needs a policy", "add `policy: custom`, or the name of the client")
        if name == "custom":
            keys.require("base_ms", "`policy: custom` needs base_ms, the first wait in ms")
        return replace(
            preset,
            base_ms=keys.number("base_ms", preset.base_ms),
            factor=keys.number("factor", preset.factor, is_zero_allowed=False),
            cap_ms=keys.number_or_null("cap_ms", preset.cap_ms),
            first_zero=keys.flag("first_zero", default=preset.first_zero),
            jitter=_read_jitter(keys, preset.jitter),
            retry_after=_read_retry_after(keys, preset.retry_after),
            late_ms=keys.number("late_ms", preset.late_ms),
            early_ms=keys.number("early_ms", preset.early_ms),
            absolute_ms=keys.number_or_null("absolute_ms", preset.absolute_ms),
            relative=keys.number_or_null("relative", preset.relative),
            place="" if where is None else str(where),
        )

    @property
    def is_declared(self) -> bool:
        """Is there a formula from which a band follows?"""
        return self.policy != "none"

    @property
    def is_plain(self) -> bool:
        """Is the plain form asked for: a distance from the golden instead of a band?"""
        return self.absolute_ms is not None or self.relative is not None


PRESETS: Final[Mapping[PolicyName, Policy]] = {
    policy.policy: policy
    for policy in (
        Policy(),
        Policy("custom", jitter=Jitter("none")),
        # Installed source of openai 3.57: min(0.5 * 2^n, 8) s times 1 - 0.25 U, two retries; above 120 s it gives up.
        Policy("openai", 500, 2, 8_000, jitter=Jitter("down", 0.25), max_attempts=3,
               retry_after=RetryAfter(abort_above_ms=120_000)),
        # Installed source of anthropic 2.14: the same formula, without the limit of 120 s.
        Policy("anthropic", 500, 2, 8_000, jitter=Jitter("down", 0.25), max_attempts=3),
        # Installed source of google-genai 3.6.1 with retry options set (without them it makes one attempt):
        # min(2^n + U(0, 1), 60) s; it never looks at Retry-After.
        Policy("google-genai", 1_000, 2, 60_000, jitter=Jitter("additive", 1_000), max_attempts=5,
               retry_after=RetryAfter("ignore")),
        # Installed source of urllib3 2.8: 0 first, then backoff_factor * 2^(k-1), cap 120 s, backoff_jitter added. Both
        # are 0 unless set, so base_ms (1,000 * backoff_factor) is what a user has to give.
        Policy("urllib3", 0, 2, 120_000, first_zero=True, jitter=Jitter("additive", 0), max_attempts=11),
        # Installed source of httpx-retries 0.6: backoff_factor * 2^k * U(0, 1), cap 120 s; backoff_factor is 0 unless
        # set, so base_ms (2,000 * backoff_factor) is what a user has to give.
        Policy("httpx-retries", 0, 2, 120_000, jitter=Jitter("full"), max_attempts=11),
        # Installed source of tenacity 9.1.4: wait_exponential_jitter(), whose band holds wait_exponential() as well.
        # wait_random_exponential() needs `jitter: {kind: full}`.
        Policy("tenacity", 1_000, 2, None, jitter=Jitter("additive", 1_000)),
        # Installed source of stamina 26.1: min(0.1 * 2^(k-1) + U(0, 1), 5) s, ten attempts, 45 s.
        Policy("stamina", 100, 2, 5_000, jitter=Jitter("additive", 1_000), max_attempts=10, max_elapsed_ms=45_000),
        # Installed source of backoff 2.2.1: expo() with full_jitter.
        Policy("backoff", 1_000, 2, None, jitter=Jitter("full")),
        # This project's own recommendation for a tool client.
        Policy("standard", 250, 2, 2_000, jitter=Jitter("symmetric", 0.2), max_attempts=3, max_elapsed_ms=10_000,
               retry_after=RetryAfter(jitter=0.2)),
    )
}  # fmt: skip
"""Name -> constants of the client, as measured or read in its source."""


def expected_wait(policy: Policy, k: int) -> float | None:
    """Return the k-th wait in ms before jitter (k = 1 before the second attempt), None without a declared policy."""
    if k < 1:
        raise ValueError(f"waits are counted from 1, not {k}")
    if not policy.is_declared:
        return None
    if policy.base_ms == 0 or (policy.first_zero and k == 1):
        return 0.0
    try:
        grown = policy.base_ms * policy.factor ** (k - 1)
    except OverflowError:
        grown = LONGEST_MS
    return min(grown, _cap_ms(policy))


def band(policy: Policy, k: int, previous_gap_ms: float | None = None) -> tuple[float, float]:
    """Return the lowest and highest k-th wait in ms that the policy itself can produce, without any slack.

    previous_gap_ms: the wait before it, which bounds a decorrelated one; None where k = 1 or it is not known.
    Without a declared policy everything is possible: (0, inf).
    """
    expected = expected_wait(policy, k)
    if expected is None:
        return 0.0, math.inf
    jitter = policy.jitter or Jitter("none")
    if policy.first_zero and k == 1:
        return 0.0, 0.0
    match jitter.kind:
        case "none":
            return expected, expected
        case "down":
            return (1 - jitter.amount) * expected, expected
        case "symmetric":
            return (1 - jitter.amount) * expected, (1 + jitter.amount) * expected
        case "full":
            return 0.0, expected
        case "equal":
            return expected / 2, expected
        case "additive":
            return expected, min(_cap_ms(policy), expected + jitter.amount)
        case "decorrelated":
            return _decorrelated_band(policy, k, previous_gap_ms)


def _cap_ms(policy: Policy) -> float:
    return LONGEST_MS if policy.cap_ms is None else min(policy.cap_ms, LONGEST_MS)


def _decorrelated_band(policy: Policy, k: int, previous_gap_ms: float | None) -> tuple[float, float]:
    low = min(policy.base_ms, _cap_ms(policy))
    if k == 1:
        widest = DECORRELATED_GROWTH * policy.base_ms
    elif previous_gap_ms is None:
        # The wait before is not known: the widest that this many draws can reach. 3 ** 60 exceeds LONGEST_MS.
        widest = policy.base_ms * DECORRELATED_GROWTH ** min(k, 60)
    else:
        # An honest wait before is never below the base; one of 0 comes from first_zero and is no draw.
        widest = DECORRELATED_GROWTH * max(previous_gap_ms, low)
    return low, max(low, min(widest, _cap_ms(policy)))


_FORMULA_KEYS: Final = ("base_ms", "factor", "cap_ms", "first_zero")
_POLICY_KEYS: Final = (
    "policy", *_FORMULA_KEYS, "jitter", "retry_after", "late_ms", "early_ms", "absolute_ms", "relative",
)  # fmt: skip
_AMOUNT_KINDS: Final = ("down", "symmetric", "additive")


def _read_jitter(keys: Keys, preset: Jitter | None) -> Jitter | None:
    inner = keys.inner("jitter", ("kind", "amount"))
    if inner is None:
        return preset
    kind = inner.choice("kind", JITTER_KINDS, preset.kind if preset else None)
    if kind not in _AMOUNT_KINDS:
        inner.refuse(("amount",), f"has no meaning under {kind}", "remove it")
        return Jitter(kind)
    if preset is None or kind != preset.kind:
        inner.require("amount", f"{kind} needs an amount: {'ms' if kind == 'additive' else 'a ratio of 0 to 1'}")
    amount = inner.number("amount", preset.amount if preset else 0.0, most=None if kind == "additive" else 1)
    return Jitter(kind, amount)


def _read_retry_after(keys: Keys, preset: RetryAfter) -> RetryAfter:
    inner = keys.inner("retry_after", ("mode", "abort_above_ms", "jitter"))
    if inner is None:
        return preset
    return RetryAfter(
        mode=inner.choice("mode", RETRY_AFTER_MODES, preset.mode),
        abort_above_ms=inner.number_or_null("abort_above_ms", preset.abort_above_ms),
        jitter=inner.number("jitter", preset.jitter),
    )
