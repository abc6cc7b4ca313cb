"""The error body that both of OpenAI's APIs answer with. Shape and words: openai-python `_exceptions.py`, API
reference."""

from typing import Any, Final

from goldentrace.replay.script import ProviderError

_TYPES: Final = {**dict.fromkeys((400, 401, 403, 404, 422), "invalid_request_error"), 409: "conflict", 429: "requests"}
_CODES: Final = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded"}
_MESSAGES: Final = {
    401: "Incorrect API key provided.",
    429: "Rate limit reached. Please try again later.",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later.",
}


def error_fields(error: ProviderError, param: str | None) -> dict[str, Any]:
    """Return the fields of `error`: message, type, param, code; what the script leaves open is what the API says."""
    return {
        "message": error.message or _MESSAGES.get(error.status, "The request could not be served."),
        "type": error.type or _TYPES.get(error.status, "server_error"),
        "param": param,
        "code": error.code or _CODES.get(error.status),
    }


def write_error(error: ProviderError, param: str | None, _request_id: str) -> dict[str, Any]:
    """Return the body of an error reply."""
    return {"error": error_fields(error, param)}
