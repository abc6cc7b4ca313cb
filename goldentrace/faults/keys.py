"""Idempotency keys the way agents should make them: from what the call is, so that a retry has the same key by itself.

This module must not use randomness: a random key is right only for as long as somebody remembers it.
"""

import hashlib
from typing import Any, Final

from goldentrace.codec.canonical import canonical

KEY_DIGITS: Final = 32


def idempotency_key(tool: str, operation: str | int, request_id: str, args: Any) -> str:
    """Return the key of one operation: 32 hex digits over tool, operation, request and canonical arguments.

    operation: what tells two deliberately equal calls of one request apart (a name or an ordinal, not the attempt);
    request_id: what the user asked for, stable across restarts; args: any JSON value, without the key itself.
    Retries of an operation have the same key, another amount or a second, meant charge has another.
    Raises: codec.canonical.JsonError for arguments that are no JSON.
    """
    text = canonical([tool, str(operation), request_id, args])
    return hashlib.sha256(text).hexdigest()[:KEY_DIGITS]
