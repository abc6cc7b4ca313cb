"""What a call is answered with, before any transport: status, value, headers, and how long it asks to wait.

Retry-After and RateLimit are written here, with the exact wait that is owed. This module must not know a connection.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

from goldentrace.faults.plan import Step
from goldentrace.model.event import ErrorClass, error_class_of_status

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """value: the JSON body; owed_ms: the wait asked for, from receipt; is_refusal: the call was turned away before its
    fault could strike; raw: a body to send in place of the value."""

    status: int
    value: Any
    headers: Headers = ()
    error_class: ErrorClass | None = None
    owed_ms: float | None = None
    is_refusal: bool = False
    mcp: str = "is_error"
    notes: Mapping[str, Any] | None = None

    @property
    def is_error(self) -> bool:
        return self.status >= 400


def reason(status: int) -> str:
    """Return the reason phrase of a status, `Unknown` for one that has none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def refusal(status: int, kind: str, message: str, *, error_class: ErrorClass | None = None, **more: Any) -> Answer:
    """Return an error answer for a call that is turned away. kind: the error's name; more: further keys of the
    error."""
    value = {"error": {"type": kind, "message": message, **more}}
    return Answer(status, value, error_class=error_class or error_class_of_status(status), is_refusal=True)


def error_value(status: int, kind: str | None = None, message: str | None = None) -> dict[str, Any]:
    """Return the body of an error whose plan gives none."""
    return {"error": {"type": kind or error_class_of_status(status) or "error", "message": message or reason(status)}}


def denied_answer(step: Step) -> Answer:
    """Return 403 for the fault `denied`: nobody with this credential will get another answer."""
    value = error_value(403, "denied", "This action was denied. Do not repeat it.")
    return Answer(403, value, error_class="denied", mcp=step.params.get("mcp", "is_error"))


def expired_answer(step: Step) -> Answer:
    """Return 401 for the fault `auth_expired`, worded as RFC 6750 section 3.1 has it."""
    value = error_value(401, "auth_expired", "The access token expired.")
    challenge = 'Bearer error="invalid_token", error_description="The access token expired"'
    return Answer(401, value, (("WWW-Authenticate", challenge),), "auth", mcp=step.params.get("mcp", "is_error"))


def status_answer(step: Step, body: Any, now_s: float) -> Answer:
    """Return the answer of a `status` step. body: the filled template, None for the plan's default; now_s: wall
    clock."""
    params = step.params
    status: int = params["status"]
    headers: list[tuple[str, str]] = []
    for name, value in params.get("headers", {}).items():
        headers.extend((name, str(item)) for item in (value if isinstance(value, list) else [value]))
    owed_ms: float | None = None
    notes: dict[str, Any] = {}
    if "retry_after" in params:
        given = params["retry_after"]
        values = given if isinstance(given, list) else [given]
        written = [_retry_after(item, now_s) for item in values]
        headers.extend(("Retry-After", text) for text, _ in written)
        owed_ms = written[0][1] if len(written) == 1 else None
        if owed_ms is None:
            notes["retry_after"] = ", ".join(text for text, _ in written)
    if "retry_after_ms" in params:
        headers.append(("retry-after-ms", f"{params['retry_after_ms']:g}"))
        owed_ms = float(params["retry_after_ms"])  # the clients that know it read it first
    headers.extend(_rate_limit(params["rate_limit"]) if "rate_limit" in params else ())
    return Answer(
        status, error_value(status) if body is None else body, tuple(headers), error_class_of_status(status), owed_ms,
        mcp=params.get("mcp", "is_error"), notes=notes or None,
    )  # fmt: skip


def _retry_after(given: Any, now_s: float) -> tuple[str, float | None]:
    """The header's text and the exact wait in ms, None where the text states none (RFC 9110, section 10.2.3).

    A date has whole seconds, so it is rounded up: rounded down, an obedient client would come up to a second too early.
    """
    if isinstance(given, int):
        return str(given), float(given * 1000) if given >= 0 else None
    if "date_in_ms" in given:
        target_s = math.ceil(now_s + given["date_in_ms"] / 1000)
        return formatdate(target_s, usegmt=True), max(0.0, round((target_s - now_s) * 1000, 3))
    return given["raw"], None


def _rate_limit(given: dict[str, Any]) -> list[tuple[str, str]]:
    """RateLimit and RateLimit-Policy (IETF draft, structured fields: policy name, r remaining, t seconds; q quota, w
    window)."""
    name = given.get("policy", "default")
    state = f'"{name}";r={given["remaining"]}' + (f";t={given['reset_s']}" if "reset_s" in given else "")
    headers = [("RateLimit", state)]
    if "quota" in given:
        policy = f'"{name}";q={given["quota"]}' + (f";w={given['window_s']}" if "window_s" in given else "")
        headers.append(("RateLimit-Policy", policy))
    return headers


def duplicate_answer(step: Step, body: Any) -> Answer:
    """Return the answer of a `duplicate_header` step: one header sent several times with different values."""
    status = step.params.get("status", 429)
    name = step.params.get("name", "Retry-After")
    values = step.params.get("values", [1, 2])
    return Answer(
        status, error_value(status) if body is None and status >= 400 else body,
        tuple((name, str(value)) for value in values), error_class_of_status(status),
        notes={name.lower(): ", ".join(map(str, values))},
    )  # fmt: skip
