"""Times of foreign files as RFC 3339 UTC with microseconds. Must not read the clock of this machine."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

_ISO: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9})\d*)?)?\s*(Z|z|UTC|[+-]\d\d:?\d\d)?", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_S: Final = 253_402_300_799
"""The last second of the year 9999, the largest that RFC 3339 can write."""


def utc(value: Any) -> str | None:
    """Return an ISO 8601 date-time as `2026-01-02T03:04:05.678901Z`, None where it is none.

    A wall clock without a zone is read as UTC: its differences hold, its absolute time may not (see has_zone).
    """
    found = _ISO.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    *parts, fraction, zone = found.groups()
    try:
        year, month, day, hour, minute, second = (int(part or 0) for part in parts)
        micros = int((fraction or "0").ljust(6, "0")[:6])
        moment = datetime(year, month, day, hour, minute, second, micros, _zone(zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return _written(moment)


def has_zone(value: Any) -> bool:
    """Whether a date-time text names its zone."""
    found = _ISO.fullmatch(value.strip()) if isinstance(value, str) else None
    return found is not None and found.group(8) is not None


def utc_from_epoch(value: Any, *, per_second: int) -> str | None:
    """Return a number (or a string of digits) of units since 1970 as RFC 3339. per_second: 1, 1_000, 1_000_000_000 …"""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 30:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LATEST_S * per_second:
        return None
    micros = value * 1_000_000 // per_second if isinstance(value, int) else int(value * 1_000_000 / per_second)
    return _written(_EPOCH + timedelta(microseconds=micros))


def _zone(text: str | None) -> timezone:
    if text is None or text in ("Z", "z", "UTC"):
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=minutes if text[0] == "+" else -minutes))


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
