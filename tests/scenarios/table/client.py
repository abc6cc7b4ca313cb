"""An agent that is told how careful to be: each part of a careful client can be taken out by itself.

python client.py '{"attempts": 2, "key": "new"}'
"""

import json
import os
import sys
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx

from goldentrace import Recorder


@dataclass(frozen=True)
class Behaviour:
    """access, args: of the call; key: idempotency key of its attempts (same, new, none); attempts: at most; wait_s: the
    first wait, doubled each time; retries: statuses worth another attempt; heeds: does it wait as long as it is told to?
    patience_s: the longest wait that it takes on; deadline_s: of one attempt; reads: strict, or anything that came;
    end: what it does once it gives up (escalate, abort, claim success); sdk_retries: tools through an SDK that repeats;
    second: arguments of another call, under the key of the first one where is_key_kept."""

    access: Any = "read"
    args: dict[str, Any] = field(default_factory=lambda: {"amount": 500})
    key: str = "none"
    attempts: int = 3
    wait_s: float = 0.1
    retries: tuple[int, ...] = (409, 429, 500, 502, 503, 504)
    heeds: bool = True
    patience_s: float = 5.0
    deadline_s: float = 5.0
    timeout_s: float = 1.0
    reads: str = "strict"
    end: str = "abort"
    sdk_retries: int | None = None
    second: dict[str, Any] | None = None
    is_key_kept: bool = False


how = Behaviour(**json.loads(sys.argv[1]))
url = os.environ["GOLDENTRACE_TOOLS_URL"]
http = httpx.Client(base_url=url, timeout=how.timeout_s, trust_env=False)
rec = Recorder()


class GiveUpError(Exception):
    """No further attempt is made."""


@rec.tool(access=how.access)
def act(**args: Any) -> Any:
    """Ask the service, within the deadline."""
    if how.sdk_retries is not None:
        from openai import OpenAI

        sdk = OpenAI(base_url=url, api_key="none", max_retries=how.sdk_retries)
        return sdk.post("/tools/act", body=args, cast_to=object)
    ends_s = time.monotonic() + how.deadline_s
    body = b""
    with http.stream("POST", "/tools/act", json=args) as response:
        response.raise_for_status()
        try:
            for part in response.iter_bytes():
                body += part
                if time.monotonic() > ends_s:
                    raise TimeoutError(f"no whole answer within {how.deadline_s} s")
        except httpx.RemoteProtocolError:
            if how.reads == "strict":
                raise
    try:
        return json.loads(body)
    except ValueError:
        if how.reads == "strict":
            raise
        return {"text": body.decode("utf-8", "replace")}


def wait_s(error: Exception, attempt: int) -> float:
    """Return how long to wait: what the answer asks for, or our own backoff."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    told = headers.get("Retry-After", "")
    if how.heeds and told.isdigit():
        return float(told)
    if how.heeds and "r=0" in headers.get("RateLimit", ""):
        return float(headers["RateLimit"].partition("t=")[2])
    return how.wait_s * 2.0 ** (attempt - 1)


def call(args: dict[str, Any], key: str) -> Any:
    """Call the tool until it answers, or until nothing more is to be hoped for. Raises: GiveUpError."""
    for attempt in range(1, how.attempts + 1):
        try:
            return act(**args, **({} if how.key == "none" else {"idempotency_key": key}))
        except Exception as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            reason = "rate_limited" if status == 429 else "auth" if status in (401, 403) else "failed"
            delay_s = wait_s(error, attempt)
            is_hopeless = status is not None and status not in how.retries
            if is_hopeless or attempt == how.attempts or delay_s > how.patience_s:
                if how.end != "claim":
                    rec.decision("escalate" if how.end == "escalate" else "abort", reason=reason)
                raise GiveUpError from error
            rec.decision("retry", reason=reason, delay_ms=delay_s * 1000)
            time.sleep(delay_s)
            if how.key == "new":
                key = str(uuid.uuid4())
    raise AssertionError("the last attempt returns or raises")


with rec:
    key = str(uuid.uuid4())
    try:
        with rec.turn():
            call(how.args, key)
        if how.second is not None:
            with rec.turn():
                call(how.second, key if how.is_key_kept else str(uuid.uuid4()))
    except GiveUpError:
        outcome: Any = {"escalate": "needs_human", "abort": "failed", "claim": "success"}[how.end]
        rec.end(outcome, "final_answer" if how.end == "claim" else "tool_error")
    else:
        rec.end("success", "final_answer")
