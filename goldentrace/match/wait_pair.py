"""A golden's wait beside the candidate's, and what is said of the two: values, allowed interval, setting, deviation.

Values and their wording only; waits.py and wait_series.py judge. A profile may change the severities given there.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from goldentrace.match.backoff import Policy
from goldentrace.match.gaps import Measure, Step, Wait
from goldentrace.match.tolerance import Interval, Runs

WaitCode: TypeAlias = Literal["GT206", "GT401", "GT402", "GT403", "GT404"]
WaitSeverity: TypeAlias = Literal["error", "warning", "no-verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitVerdict:
    """What is to be said of one wait.

    index, golden_index: its place among the waits of each side, from 0. code and severity: None if nothing is wrong;
    `no-verdict` means exit code 3. measure: what was compared: the observed gap, the announced delay, or the sum of
    several of them. golden_ms, now_ms: the two values; lo_ms, hi_ms: what is allowed, slack included, None = no bound;
    deviation_ms: negative too short, positive too long. source: the setting that gives the tolerance. reason: what is
    wrong, in words. not_comparable: why nothing could be compared; coverage: what was not compared without being a
    change (times on neither side); notes: what else a reader should know.
    """

    index: int
    golden_index: int
    origin: str
    code: WaitCode | None = None
    severity: WaitSeverity | None = None
    measure: Literal["gap", "delay", "sum"] = "gap"
    golden_ms: float | None = None
    now_ms: float | None = None
    lo_ms: float | None = None
    hi_ms: float | None = None
    deviation_ms: float = 0.0
    source: str = ""
    reason: str = ""
    not_comparable: str | None = None
    coverage: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """One line: golden, now, allowed interval, deviation, and the setting that gives the tolerance."""
        parts = [f"retry {self.index + 1}"]
        if self.not_comparable or self.coverage:
            parts[0] += f": {self.not_comparable or self.coverage}"
        else:
            parts[0] += f": {self.reason}" if self.reason else ": ok"
        if self.golden_ms is not None:
            parts.append(f"golden {format_ms(self.golden_ms)}")
        if self.now_ms is not None:
            parts.append(f"now {format_ms(self.now_ms)}")
        if self.lo_ms is not None or self.hi_ms is not None:
            parts.append(f"allowed {_format_bounds(self.lo_ms, self.hi_ms)}")
        if self.deviation_ms:
            parts.append(f"{format_ms(abs(self.deviation_ms))} too {'short' if self.deviation_ms < 0 else 'long'}")
        return ", ".join(parts) + (f" ({self.source})" if self.source else "")


@dataclass(frozen=True, slots=True)
class WaitPair:
    """A golden's wait and the candidate's, each at its place, under one policy."""

    policy: Policy
    golden: Step
    candidate: Step
    runs: Runs | None

    @property
    def is_announced(self) -> bool:
        """Do both sides state the delay, so that it can be compared instead of the noisier gap?"""
        return self.golden.wait.value("delay") is not None and self.candidate.wait.value("delay") is not None

    @property
    def measure(self) -> Measure:
        return "delay" if self.is_announced else "gap"

    @property
    def is_latency(self) -> bool:
        """Is one of the gaps the model's latency rather than a wait?"""
        return self.golden.wait.after_model_turn or self.candidate.wait.after_model_turn

    def verdict(self, measure: Measure | None = None, **fields: Any) -> WaitVerdict:
        """Fill in place and values; `fields` are those of WaitVerdict."""
        measure = measure or self.measure
        step = self.candidate
        fields.setdefault("golden_ms", self.golden.wait.value(measure))
        fields.setdefault("now_ms", step.wait.value(measure))
        notes = tuple(note for note in (*fields.pop("notes", ()), _note_of_owed(step.wait)) if note)
        return WaitVerdict(
            index=step.position, golden_index=self.golden.position, origin=step.wait.origin, measure=measure,
            notes=notes, **fields,
        )  # fmt: skip

    def sourced(self, setting: str) -> str:
        """Add to a setting the place where the policy was declared."""
        return f"{setting}, {self.policy.place}" if self.policy.place else setting

    def measured(self, interval: Interval, measure: Measure, code: WaitCode, what: str) -> WaitVerdict:
        """Hold the candidate's value against the interval; `what` names the value in the message."""
        value = self.candidate.wait.value(measure)
        deviation = 0.0 if value is None else interval.deviation(value)
        return self.verdict(
            measure,
            code=code if deviation else None,
            severity="error" if deviation else None,
            lo_ms=interval.lo_ms,
            hi_ms=interval.hi_ms,
            deviation_ms=deviation,
            source=self.sourced(interval.source),
            reason=what if deviation else "",
            notes=(interval.note,),
        )


def format_ms(value: float) -> str:
    """Write a number of ms as a person reads it: whole from 10 on, else with enough digits not to become 0."""
    if abs(value) >= 10 or value == 0:
        return f"{value:.0f} ms"
    return f"{round(value, 1):g} ms" if abs(value) >= 0.1 else f"{value:.1g} ms"


def _format_bounds(lo_ms: float | None, hi_ms: float | None) -> str:
    low = max(0.0, lo_ms or 0.0)
    if hi_ms is None:
        return f"at least {format_ms(low)}"
    return f"at most {format_ms(hi_ms)}" if lo_ms is None else f"{format_ms(low)} to {format_ms(hi_ms)}"


def _note_of_owed(wait: Wait) -> str | None:
    if wait.owed_ms is None or wait.asked_ms > 0:
        return None
    return f"Retry-After of {wait.owed_ms:g} ms asks for no wait"
