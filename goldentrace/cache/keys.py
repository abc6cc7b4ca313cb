"""When two calls are the same call to a cache: what the rules call equal, and nothing that JSON cannot say.

The key is the semantic key of the rules (key order does not count, 5 and "5" are equal, strings are trimmed, what the
profile ignores is left out), so that a repeat that a rule reports is a repeat that the cache answers. Must not keep
anything.
"""

from typing import Any, Final

from goldentrace.codec.canonical import JsonError, canonical
from goldentrace.model.profile import Profile
from goldentrace.rules.arguments import semantic, without_ignored

_SCALARS: Final = (str, int, float, bool, type(None))


def call_key(tool_name: str, arguments: Any, profile: Profile) -> bytes | None:
    """Return the key of a call; None where its arguments are no plain JSON, so that nothing tells which calls are
    equal (an open connection, a date object, NaN)."""
    try:
        plain = _plain(arguments)
        return canonical([tool_name, semantic(without_ignored(plain, profile, tool_name))])
    except (JsonError, RecursionError, _NotJsonError):
        return None


class _NotJsonError(Exception):
    """A value that JSON has no form for."""


def _plain(value: Any) -> Any:
    """A tuple is a list; an int that is no int (an enum) or a key that is no string is refused: two different calls
    must never share a key."""
    if type(value) in _SCALARS:
        return value
    if type(value) is dict:
        if not all(type(name) is str for name in value):
            raise _NotJsonError
        return {name: _plain(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return [_plain(item) for item in value]
    raise _NotJsonError
