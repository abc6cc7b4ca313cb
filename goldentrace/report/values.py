"""Values as people read them: JSON on one line, digests and placeholders as they stand in a golden, times in s and ms.

Values reach this room redacted; nothing here may look behind a digest or a placeholder.
"""

import re
from typing import Any, Final

MAX_CHARS: Final = 2_000
"""Characters of a value that a report keeps: enough to recognise it, little enough that 5,000 changes stay readable."""

_WRITTEN: Final = re.compile(r"(?:[a-z]+(?:\[\d+\])? )?h:[0-9a-f]{6,64}(?: ?<.*>)*|<[^<>]+>(?: ?<[^<>]+>)*", re.DOTALL)
"""A leaf as a golden writes it: type, length and digest, a digest with placeholders, or placeholders alone."""
_BARE: Final = {"[]", "{}", "json", "object", "null"}


def shown(value: Any) -> str:
    """Return a value as one line: written leaves as they are, everything else as compact JSON.

    `{"value": …}`, the form of a value kept in clear, is shown as the value. None is an absent value.
    """
    if value is None:
        return "(absent)"
    if isinstance(value, str):
        if value in _BARE or _WRITTEN.fullmatch(value):
            return value
        return as_json(value)
    if isinstance(value, dict) and value.keys() == {"value"}:
        return as_json(value["value"])
    return as_json(value)


def as_json(value: Any) -> str:
    """Return compact JSON, letters as they are, control characters escaped."""
    import json

    try:
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)
    except ValueError:  # an integer of more digits than Python prints
        return "(a number of more than 4,300 digits)"


def is_long(value: Any) -> bool:
    """Is a value longer than a report keeps?"""
    return len(value if isinstance(value, str) else as_json(value)) > MAX_CHARS


def capped(value: Any) -> Any:
    """Return a value as a report keeps it: itself, or the two ends of its text where that is longer than MAX_CHARS."""
    if not is_long(value):
        return value
    text = value if isinstance(value, str) else as_json(value)
    half = MAX_CHARS // 2
    return f"{text[:half]}... ({len(text) - 2 * half} characters left out) ...{text[-half:]}"


def offset(ms: float | None) -> str:
    """Return an offset since the start: `+0.41s`, `+75.2s`, `+1h02m07s`; empty where it is not known."""
    if ms is None:
        return ""
    sign = "-" if ms < 0 else "+"
    seconds = abs(ms) / 1000
    if seconds < 100:
        return f"{sign}{seconds:.2f}s"
    if seconds < 1000:
        return f"{sign}{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}h{minutes:02d}m{rest:02d}s" if hours else f"{sign}{minutes}m{rest:02d}s"


def wait(ms: float | None) -> str:
    """Return a wait: `204ms` below a second, else seconds to the ms, `2.004s`; `?` where it is not known."""
    if ms is None:
        return "?"
    if abs(ms) < 999.5:
        return (f"{ms:.0f}" if abs(ms) >= 10 else f"{ms:.1f}".removesuffix(".0")) + "ms"
    return f"{ms / 1000:.3f}s"


def brief_wait(ms: float | None) -> str:
    """Return a wait without the zeros at its end: `2s`, `2.157s`, `204ms`."""
    if ms is None or abs(ms) < 999.5:
        return wait(ms)
    return f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a count with its noun: `1 error`, `2 errors`."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"
