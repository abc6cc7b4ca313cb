"""What of an agent's values reaches the file: plain JSON, without secrets, without hidden reasoning.

Everything that a tool takes or gives, every text and every error passes here before it is written. A value that JSON
has no form for is recorded by its type, never by its repr: a repr holds addresses, and runs must compare. This module
must not write files or change the agent's own objects.
"""

import contextlib
import math
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from goldentrace.codec.canonical import ARGS_DIGITS, MAX_INTEGER_DIGITS, JsonError, canonical, decode, digest, encode
from goldentrace.codec.patterns import compile_pattern, remember
from goldentrace.errors import ConfigError, Where
from goldentrace.model.config import RecordPolicy
from goldentrace.model.event import ABSENT
from goldentrace.model.profile import Redact
from goldentrace.normalize.redact import Redactor, is_secret_key

STORAGE_VARIABLE: Final = "GOLDENTRACE_RECORD"
MAX_DEPTH: Final = 200
"""A value nested deeper is cut there: less than codec.canonical.MAX_DEPTH, beyond which readers refuse a whole line."""

MAX_REMEMBERED_NAMES: Final = 4096
"""Names of fields are few; where they are data, remembering must not grow with the run."""

_MAX_INTEGER_BITS: Final = int(MAX_INTEGER_DIGITS * math.log2(10))

_REASONING_MARKS: Final = ('thinking"', '"reasoning')
"""One of these stands in every JSON text that holds a block or a field of hidden reasoning."""
_REASONING_TYPES: Final = {
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "reasoning": ("encrypted_content", "summary", "content", "text"),
}
"""Content blocks as the providers send them: type and one of the fields beside it (Anthropic Messages, OpenAI
Responses)."""
_REASONING_FIELDS: Final = frozenset({"reasoning_content", "reasoning_details", "thinking_blocks"})
"""Fields of a message (OpenAI-compatible servers, LiteLLM)."""
_REASONING_ROLES: Final = frozenset({"reasoning", "thinking", "analysis"})
_ENCODER: Final = msgspec.json.Encoder(order="deterministic", enc_hook=lambda value: _stand_in(value))  # noqa: PLW0108 - defined below


class StoragePolicy(RecordPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be stored at all. redact: the detectors of secrets and the user's own rules."""

    redact: Redact = Redact()


def read_storage(text: str | None) -> StoragePolicy:
    """Return what GOLDENTRACE_RECORD says (a JSON object). Raises: ConfigError."""
    try:
        policy = msgspec.json.decode(text, type=StoragePolicy) if text else StoragePolicy()
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"not valid: {error}",
            where=Where(STORAGE_VARIABLE),
            next_step='it is JSON like {"results": "hash", "messages": "drop"}',
        ) from None
    for rule in policy.redact.rules:
        for pattern in filter(None, (rule.pattern, rule.allow)):
            compile_pattern(pattern, Where(STORAGE_VARIABLE, None, f"$.redact.rules: {rule.name}"))
            remember(pattern, Where(STORAGE_VARIABLE, None, f"$.redact.rules: {rule.name}"))
    return policy


class Written(msgspec.Struct, frozen=True):
    """A result as it is recorded: the value, or its digest and size."""

    value: Raw = ABSENT
    digest: str | None = None
    size_bytes: int | None = None


class Payloads:
    """Makes values recordable. storage: what may be kept; own: the user's redaction, applied to each plain value as
    well."""

    def __init__(self, storage: StoragePolicy, own: Callable[[Any], Any] | None = None) -> None:
        self.storage = storage
        self._own = own
        self._redactor = Redactor(storage.redact)
        self._has_rules = bool(storage.redact.rules)
        self._numbers: dict[str, int] = {}
        self._names: dict[str, bool] = {}
        self.reset_lock()

    def reset_lock(self) -> None:
        """After a fork: the lock may have been held by a thread that is not here."""
        self._lock = threading.Lock()

    def raw(self, value: Any) -> Raw:
        """Return a value as it is written. Raises: JsonError only where the user's redaction returns no JSON."""
        return Raw(self._encoded(value))

    def result(self, value: Any) -> Written:
        """Return a result as it is written, by its digest where results are not kept."""
        encoded = self._encoded(value)
        if self.storage.results == "keep":
            return Written(Raw(encoded))
        return Written(digest=digest(canonical(decode(encoded)), ARGS_DIGITS), size_bytes=len(encoded))

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return str(self.plain(text))

    def plain(self, value: Any) -> Any:
        """Return the value as plain JSON, without secrets and hidden reasoning."""
        return decode(self._encoded(value))

    def message(self, role: str, content: Any) -> str | None:
        """Return the text of a message to be written; None where it may not be, or is hidden reasoning.

        content: a string, or content blocks as the providers send them, of which only texts are taken.
        """
        if self.storage.messages == "drop" or is_reasoning_role(role):
            return None
        return self.text(content if isinstance(content, str) else _text_of(plain_value(content)))

    def _encoded(self, value: Any) -> bytes:
        encoded = _encode_value(value if self._own is None else self._own(plain_value(value)))
        text = encoded.decode("utf-8")
        marks = self._redactor.marks_in(encoded)
        is_suspect = bool(marks) or self._has_rules
        if not is_suspect and _REASONING_MARKS[0] not in text and _REASONING_MARKS[1] not in text:
            return encoded
        plain = decode(encoded)
        has_secret = is_suspect and self._has_secret(plain, marks, None)
        has_reasoning = _REASONING_MARKS[0] in text or _REASONING_MARKS[1] in text
        if not has_secret and not has_reasoning:
            return encoded
        with self._lock:  # two secrets must not get one number
            return encode(self._redactor.redact_value(without_reasoning(plain), self._numbers))

    def _has_secret(self, value: Any, marks: tuple[str, ...], key: str | None) -> bool:
        """Does a redactor find anything in a plain value? marks: those of the whole document; a string is searched only
        if it holds one of them, or if its key makes it a secret. Cheaper than redacting, which most values need not.
        """
        kind = type(value)
        if kind is dict:
            names = self._names
            for name, item in value.items():
                is_secret = names.get(name)
                if is_secret is None:
                    if self._redactor.find(name):
                        return True
                    is_secret = self._remember(name)
                kind = type(item)
                if kind is str:
                    if (is_secret or _holds(item, marks) or self._has_rules) and self._redactor.find(item, name):
                        return True
                elif (kind is dict or kind is list) and self._has_secret(item, marks, name):
                    return True
        elif kind is list:
            for item in value:
                if self._has_secret(item, marks, key):
                    return True
        elif kind is str:
            is_searched = self._has_rules or (key is not None and is_secret_key(key)) or _holds(value, marks)
            return is_searched and bool(self._redactor.find(value, key))
        return False

    def _remember(self, name: str) -> bool:
        """Is any text under this name of a field a secret? The same names, harmless by themselves, come again and
        again."""
        is_secret = is_secret_key(name)
        if len(name) < 64 and len(self._names) < MAX_REMEMBERED_NAMES:
            self._names[name] = is_secret
        return is_secret


def _holds(text: str, marks: tuple[str, ...]) -> bool:
    low = text.lower()
    for mark in marks:  # noqa: SIM110 - any() with a generator takes four times as long, for every string
        if mark in low:
            return True
    return False


def is_reasoning_role(role: str) -> bool:
    """Is this the role of hidden reasoning, which is never recorded?"""
    return role in _REASONING_ROLES


def plain_value(value: Any) -> Any:
    """Return the value made of dict, list, str, int, float, bool and None. Sets are sorted, keys are strings."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    try:
        return msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=_stand_in)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return _plain_slowly(value, 0)


def _stand_in(value: Any) -> Any:
    """A value of a foreign type as one that msgspec knows."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if (response := _response(value)) is not None:
        return response
    for method, options in (("model_dump", {"mode": "json"}), ("tolist", {})):  # pydantic; numpy
        dump = getattr(value, method, None)
        if callable(dump) and not isinstance(value, type):
            with contextlib.suppress(Exception):  # foreign code; its type says enough
                return dump(**options)
    kind = value if isinstance(value, type) else type(value)
    return f"<{kind.__module__}.{kind.__qualname__}>"


def _response(value: Any) -> dict[str, Any] | None:
    """An HTTP response of httpx or requests: its status, and its body if it was read (reading it is the agent's
    matter)."""
    with contextlib.suppress(Exception):
        if not isinstance(value.status_code, int) or not hasattr(value, "headers"):
            return None
        if getattr(value, "is_stream_consumed", False) or getattr(value, "_content_consumed", False):
            try:
                body = decode(value.content)
            except JsonError:
                body = value.text
            return {"http_status": value.status_code, "body": body}
        return {"http_status": value.status_code}
    return None


def _plain_slowly(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        return "<nested too deeply>"
    if value is None or isinstance(value, bool | int | float | str):
        return _stand_in(value) if type(value) not in (bool, int, float, str, type(None)) else value
    if isinstance(value, Mapping):
        return {key if type(key) is str else str(key): _plain_slowly(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_slowly(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain_slowly(item, depth + 1) for item in value), key=repr)
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_stand_in)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return _stand_in(value)


def _encode_value(value: Any) -> bytes:
    """Any value as JSON: in one pass where it can be, else made plain first."""
    try:
        encoded = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return _encode_plain(plain_value(value))
    if b"null" in encoded or encoded.count(b"[") + encoded.count(b"{") > MAX_DEPTH:
        # msgspec writes NaN and Infinity as null; and nests as deeply as it can, where readers have to stop.
        return _encode_plain(plain_value(value))
    return encoded


def _encode_plain(plain: Any) -> bytes:
    try:
        encoded = encode(plain)
    except ValueError:  # JsonError, and what str() says of an integer with too many digits
        return encode(_encodable(plain, 0))
    is_deep = encoded.count(b"[") + encoded.count(b"{") > MAX_DEPTH
    return encode(_encodable(plain, 0)) if is_deep else encoded


def _encodable(value: Any, depth: int) -> Any:
    """The value with what JSON cannot hold as text: NaN, Infinity, integers and nesting beyond what readers take."""
    if depth > MAX_DEPTH:
        return "<nested too deeply>"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _MAX_INTEGER_BITS:
        return f"<integer of {value.bit_length()} bits>"
    if isinstance(value, dict):
        return {key: _encodable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item, depth + 1) for item in value]
    return value


def without_reasoning(value: Any) -> Any:
    """Return a plain value without blocks and fields of hidden reasoning; see the tables at the head of the module."""
    if isinstance(value, dict):
        return {
            key: without_reasoning(item)
            for key, item in value.items()
            if key not in _REASONING_FIELDS and not _is_reasoning_block(item)
        }
    if isinstance(value, list):
        return [without_reasoning(item) for item in value if not _is_reasoning_block(item)]
    return value


def _is_reasoning_block(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    fields = _REASONING_TYPES.get(str(value.get("type")))
    return fields is not None and any(field in value for field in fields)


def _text_of(content: Any) -> str:
    """The texts of content blocks, joined by line breaks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (_text_of(block) for block in content)))
    if isinstance(content, dict) and not _is_reasoning_block(content):
        text = content.get("text", content.get("content"))
        return _text_of(text) if isinstance(text, str | list) else ""
    return ""
