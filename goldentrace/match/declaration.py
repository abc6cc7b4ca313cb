"""Reads the typed keys of one declared mapping, so that a typing error in a policy never passes as a default.

Knows nothing of policies; takes values that a YAML or JSON reader produced, and must not read a file itself.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, cast

from goldentrace.errors import ConfigError, Where

Name = TypeVar("Name", bound=str)

SHOWN_CHARS: Final = 60
"""How much of a wrong value an error message repeats."""
LARGEST_NUMBER: Final = 1e15
"""Larger numbers are typing errors in every key read here (30,000 years in ms), and their products may overflow."""


class Keys:
    """One mapping whose keys are all known; every method raises ConfigError that names the key and its place.

    mapping: as loaded; where: the place of the mapping, None if unknown; name: how messages call it; known: its keys.
    """

    def __init__(self, mapping: object, where: Where | None, name: str, known: Sequence[str]) -> None:
        self._name = name
        self._where = where
        if not isinstance(mapping, Mapping):
            raise ConfigError(
                f"{name} must be a mapping, not {_show(mapping)}",
                where=where,
                next_step=f"write it as `{name}: {{{known[0]}: …}}`",
            )
        self._mapping = cast("Mapping[object, object]", mapping)
        for key in self._mapping:
            if not isinstance(key, str) or key not in known:
                self._reject_key(key, known)

    def inner(self, key: str, known: Sequence[str]) -> "Keys | None":
        """Return the mapping under `key`, None if it is not there."""
        if key not in self._mapping:
            return None
        return Keys(self._mapping[key], self._place(key), f"{self._name}.{key}", known)

    def number(self, key: str, default: float, *, most: float | None = None, is_zero_allowed: bool = True) -> float:
        """Return a finite number of 0 or more, at most `most`."""
        if key not in self._mapping:
            return default
        value = self._mapping[key]
        if isinstance(value, int | float) and not isinstance(value, bool):
            # NaN fails both comparisons; an int of any length compares exactly before it becomes a float.
            is_inside = 0 <= value <= (LARGEST_NUMBER if most is None else most)
            if is_inside and (value > 0 or is_zero_allowed):
                return float(value)
        wanted = "a number of 0 or more" if is_zero_allowed else "a number above 0"
        if most is not None:
            wanted = f"a number of 0 to {most:g}"
        raise self._error(key, f"must be {wanted}, not {_show(value)}")

    def number_or_null(self, key: str, default: float | None) -> float | None:
        """Return a finite number of 0 or more, or None where null is written."""
        if key not in self._mapping:
            return default
        return None if self._mapping[key] is None else self.number(key, 0.0)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self._mapping.get(key, default)
        if isinstance(value, bool):
            return value
        raise self._error(key, f"must be true or false, not {_show(value)}")

    def choice(self, key: str, choices: Sequence[Name], default: Name | None) -> Name:
        """Return one of `choices`; the key is required if there is no default."""
        if key not in self._mapping and default is not None:
            return default
        value = self._mapping.get(key)
        for known in choices:
            if value == known and isinstance(value, str):
                return known
        if key not in self._mapping:
            raise self._error(key, f"is missing; it is one of {', '.join(choices)}")
        raise self._error(key, f"cannot be {_show(value)}", _suggest(value, choices))

    def require(self, key: str, why: str) -> None:
        """Raise unless `key` is there."""
        if key not in self._mapping:
            raise ConfigError(why, where=self._where, next_step=f"add {key} to {self._name}")

    def refuse(self, keys: Sequence[str], why: str, next_step: str) -> None:
        """Raise for the first of `keys` that is there: it would have no effect."""
        for key in keys:
            if key in self._mapping:
                raise self._error(key, why, next_step)

    def _reject_key(self, key: object, known: Sequence[str]) -> None:
        what = f"{self._name} has no key {_show(key)}"
        raise ConfigError(what, where=self._place(str(key)[:SHOWN_CHARS]), next_step=_suggest(key, known))

    def _error(self, key: str, what: str, next_step: str = "") -> ConfigError:
        return ConfigError(f"{self._name}.{key} {what}", where=self._place(key), next_step=next_step)

    def _place(self, key: str) -> Where | None:
        if self._where is None:
            return None
        shown = key if key.isidentifier() else ascii(key)
        pointer = f"{self._where.pointer or '$'}.{shown}"
        return Where(self._where.path, self._where.line, pointer, self._where.byte)


def _suggest(value: object, known: Sequence[str]) -> str:
    import difflib  # only an error needs it: 5 ms

    close = difflib.get_close_matches(value, known, n=1) if isinstance(value, str) else []
    listed = f"known: {', '.join(known)}"
    return f"did you mean {close[0]}? ({listed})" if close else listed


def _show(value: object) -> str:
    """Repeat a value on one line and bounded, whatever it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, int | float | str):
        text = repr(value[: SHOWN_CHARS + 1] if isinstance(value, str) else value)
        return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, Sequence) else f"a {type(value).__name__}"
