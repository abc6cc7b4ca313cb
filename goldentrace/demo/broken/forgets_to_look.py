"""BROKEN: takes a lost response for a refund that was made, and never looks.

It looks an order up, refunds it, tells the customer. The tools are a real HTTP service on this machine, with bad days:
it says 429 with Retry-After, answers 503, or does what it was asked and loses the response.
"""

import os
import time
import uuid
from collections.abc import Callable
from typing import Any

import httpx

from goldentrace import Recorder

MAX_ATTEMPTS = 3
BACKOFF_S = 0.2

# trust_env: the tools are on this machine, whatever proxy the environment names for the rest of the world.
http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=0.3, trust_env=False)
rec = Recorder()  # writes to the file in $GOLDENTRACE_TRACE; without one the agent runs unrecorded


def post(tool: str, **args: Any) -> Any:
    """Ask the service for one tool call."""
    response = http.post(f"/tools/{tool}", json=args)
    response.raise_for_status()
    return response.json()


@rec.tool(access="read")
def get_order(order_ref: str) -> Any:
    """Return the order that a customer calls `order_ref`."""
    return post("get_order", order_ref=order_ref)


@rec.tool(access="write", idempotency_key="{idempotency_key}")
def refund_order(order_id: str, amount_cents: int, idempotency_key: str) -> Any:
    """Pay an order back; the service does it once per key."""
    return post("refund_order", order_id=order_id, amount_cents=amount_cents, idempotency_key=idempotency_key)


@rec.tool(access="read")
def find_refund(idempotency_key: str) -> Any:
    """Return the refund that was made with a key."""
    return post("find_refund", idempotency_key=idempotency_key)


@rec.tool(access="write")
def notify_customer(order_id: str, refund_id: str) -> Any:
    """Tell the customer that the money is on its way."""
    return post("notify_customer", order_id=order_id, refund_id=refund_id)


class UnsureError(Exception):
    """Nobody knows whether the money was sent."""


def call(tool: Callable[..., Any], **args: Any) -> Any:
    """Call a tool; wait and try again where the answer says that it may help."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return tool(**args)
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            if status not in (429, 503) or attempt == MAX_ATTEMPTS:
                raise
            wait_s = BACKOFF_S * 2 ** (attempt - 1)
            if status == 429:
                wait_s = float(error.response.headers.get("Retry-After", wait_s))
            reason = "rate_limited" if status == 429 else "unavailable"
            rec.decision("retry", reason=reason, delay_ms=wait_s * 1000)
            time.sleep(wait_s)
    raise AssertionError("the last attempt returns or raises")


def refund(order: Any) -> Any:
    """Refund an order once, whatever gets lost on the way."""
    key = str(uuid.uuid4())  # one refund, one key: a retry with it cannot pay twice
    args = {"order_id": order["order_id"], "amount_cents": order["amount_cents"], "idempotency_key": key}
    try:
        return call(refund_order, **args)
    except httpx.TimeoutException:
        return {"refund_id": "pending"}


def reconcile(args: dict[str, Any]) -> Any:
    """Settle a refund that may have been made although its response was lost: look before paying again."""
    rec.decision("reconcile", reason="timeout")
    try:
        with rec.origin("harness"):
            return call(find_refund, idempotency_key=args["idempotency_key"])
    except httpx.HTTPStatusError as error:
        if error.response.status_code != 404:
            raise UnsureError from error
    return call(refund_order, **args)


def main() -> None:
    """Do what a model would have planned for: "Please refund my order A-1007, it arrived broken."."""
    with rec:
        with rec.turn():
            order = call(get_order, order_ref="A-1007")
        with rec.turn():
            try:
                done = refund(order)
            except UnsureError:
                rec.decision("escalate", reason="unknown_outcome")
                rec.end("needs_human", "tool_error")
                return
        with rec.turn():
            call(notify_customer, order_id=order["order_id"], refund_id=done["refund_id"])
        rec.end("success", "final_answer")


main()
