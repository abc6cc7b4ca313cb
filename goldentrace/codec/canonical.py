"""JSON values in and out, and the digests over them.

Canonical JSON: keys sorted by code point, no white space, UTF-8, integral floats below 1e21 as integers and other
floats as RFC 8785 (ECMAScript) writes them, integers exact, lone surrogates kept distinct. 1 and 1.0 are one value, 1
and "1" two.

msgspec does the work; its limits are met here, once: it writes 1.0 and 1e16 as such, rejects lone surrogates (those go
through the standard library) and integers of more than 4,300 digits (those are refused), and recurses on nesting, as
everything that walks a value does: MAX_DEPTH is what all of them are safe with. This module must not know what an event
is.
"""

import hashlib
import math
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Raw

ARGS_DIGITS: Final = 16
LEAF_DIGITS: Final = 12
ELEMENT_DIGITS: Final = 6
"""Hex digits kept of a SHA-256: of an argument map; of a leaf, profile or variant; of an array element that is
named."""

MAX_INTEGER_DIGITS: Final = 4300
"""Python's own limit against quadratic conversion (sys.int_info.default_max_str_digits); beyond it a number is
refused."""

MAX_DEPTH: Final = 256
"""Levels of arrays and objects in one JSON value. A walker takes up to three of Python's 1,000 frames for a level; the
deepest of 132 real files has 13."""

TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"

_PLAIN_INTEGER_BELOW: Final = 1e21
"""ECMAScript writes integral numbers below this without an exponent (RFC 8785, section 3.2.2.3)."""

_CONTAINERS: Final = (dict, list)
_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder(order="sorted")
_LINE_ENCODER = msgspec.json.Encoder()


class JsonError(ValueError):
    """Not JSON, or JSON beyond the limits. The message is one clause, without the value."""


def decode(data: bytes | Raw | str, max_depth: int = MAX_DEPTH) -> Any:
    """Return the Python value of one JSON document.

    max_depth: levels of arrays and objects; less where the document is a string within a value that has some already.
    Raises: JsonError for anything that is not JSON (NaN and Infinity included), nests deeper, or holds an integer of
    more than MAX_INTEGER_DIGITS digits. Invalid UTF-8 is a JsonError too.
    """
    value = _decoded(data)
    if type(value) not in _CONTAINERS or len(data) <= 2 * max_depth:
        return value
    # the brackets of a Raw could only be counted in a copy
    if (isinstance(data, Raw) or may_be_deeper(data, max_depth)) and is_deeper(value, max_depth):
        raise JsonError(TOO_DEEP)
    return value


def _decoded(data: bytes | Raw | str) -> Any:
    try:
        return _DECODER.decode(data)
    except RecursionError:
        raise JsonError(TOO_DEEP) from None
    except msgspec.ValidationError:
        pass  # a number out of range: the standard library reads what is finite
    except (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError):
        pass  # perhaps a lone surrogate, escaped or in the text itself, which the standard library accepts
    return _decode_slowly(bytes(data) if isinstance(data, Raw) else data)


def may_be_deeper(data: bytes | str, max_depth: int = MAX_DEPTH) -> bool:
    """May a JSON text have more levels? False is certain, and is told without reading the text as JSON."""
    if len(data) <= 2 * max_depth:
        return False
    if isinstance(data, str):
        return data.count("[") + data.count("{") > max_depth
    return data.count(b"[") + data.count(b"{") > max_depth


def is_deeper(value: Any, max_depth: int = MAX_DEPTH) -> bool:
    """Does a value have more levels of arrays and objects?"""
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(max_depth):
        level = [
            item for box in level for item in (box.values() if type(box) is dict else box) if type(item) in _CONTAINERS
        ]
        if not level:
            return False
    return True


def _decode_slowly(data: bytes | str) -> Any:
    import json

    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 (byte {error.start} of the value)") from None
    except RecursionError:
        raise JsonError(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON ({error.msg[:1].lower()}{error.msg[1:]}, character {error.pos + 1})") from None
    except JsonError:
        raise
    except ValueError:
        raise JsonError(f"an integer of more than {MAX_INTEGER_DIGITS} digits") from None


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")


def _finite_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise JsonError("a number out of range")
    return value


def encode(value: Any) -> bytes:
    """Return compact JSON in the given key order, for a line that a person may read. Lone surrogates are escaped.

    Raises: JsonError for NaN, Infinity and values that JSON has no form for.
    """
    return _encoded(_LINE_ENCODER, value, is_sorted=False)


def encode_raw(value: Any) -> Raw:
    """Return `encode(value)` as Raw, as events carry arguments and results."""
    return Raw(encode(value))


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value: equal values, equal bytes.

    Raises: JsonError for NaN, Infinity and values that JSON has no form for.
    """
    return _encoded(_ENCODER, value, is_sorted=True)


def _encoded(encoder: msgspec.json.Encoder, value: Any, *, is_sorted: bool) -> bytes:
    try:
        return encoder.encode(_plain(value))
    except (UnicodeEncodeError, msgspec.EncodeError):
        return _encode_slowly(value, is_sorted=is_sorted).encode("ascii")
    except RecursionError:
        raise JsonError(TOO_DEEP) from None
    except JsonError:
        raise
    except (TypeError, ValueError) as error:
        raise JsonError(_why_not(error)) from None


def _why_not(error: TypeError | ValueError) -> str:
    """Python's own limit on digits is the only ValueError of an encoder."""
    if isinstance(error, ValueError):
        return f"an integer of more than {MAX_INTEGER_DIGITS} digits"
    return str(error)


def _encode_slowly(value: Any, *, is_sorted: bool) -> str:
    """The form of a value that holds a lone surrogate: as msgspec writes it, but strings escaped to ASCII."""
    import json

    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        items = sorted(value.items()) if is_sorted else value.items()
        return (
            "{"
            + ",".join(f"{json.dumps(key)}:{_encode_slowly(item, is_sorted=is_sorted)}" for key, item in items)
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ",".join(_encode_slowly(item, is_sorted=is_sorted) for item in value) + "]"
    try:
        return _ENCODER.encode(_plain(value)).decode("ascii")
    except TypeError as error:
        raise JsonError(str(error)) from None


def _plain(value: Any) -> Any:
    """Return the value with every float in its canonical form; the same object where there is none to change."""
    kind = type(value)
    if kind is str or kind is int or value is None or kind is bool:
        return value
    if kind is float:
        return number(value)
    if kind is dict:
        changed = {key: _plain(item) for key, item in value.items()}
        return changed if any(changed[key] is not item for key, item in value.items()) else value
    if kind is list or kind is tuple:
        return [_plain(item) for item in value]
    return value


def number(value: float) -> int | Raw:
    """Return the canonical form of a float: an int where it is integral and below 1e21, else its ECMAScript text.

    Raises: JsonError for NaN and Infinity.
    """
    if not math.isfinite(value):
        raise JsonError("NaN and Infinity are not JSON")
    if value.is_integer() and abs(value) < _PLAIN_INTEGER_BELOW:
        return int(value)
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return Raw(mantissa.encode())
    power = int(exponent)
    digits = mantissa.lstrip("-").replace(".", "")
    if -7 < power < 0:  # ECMAScript keeps six zeros after the point before it turns to an exponent
        sign = "-" if value < 0 else ""
        return Raw(f"{sign}0.{'0' * (-power - 1)}{digits}".encode())
    return Raw(f"{mantissa.removesuffix('.0')}e{power:+d}".encode())


def digest(data: bytes, digits: int, key: bytes | None = None) -> str:
    """Return `h:` and the first `digits` hex digits of SHA-256 over the bytes, HMAC-SHA-256 where a key is given."""
    if key is None:
        return "h:" + hashlib.sha256(data).hexdigest()[:digits]
    import hmac

    return "h:" + hmac.digest(key, data, "sha256").hex()[:digits]
