"""Charges a card. Plain httpx: a charge whose answer is lost is sent again under the key that it had."""

import os
import time
import uuid
from typing import Any

import httpx

from goldentrace import Recorder

MAX_ATTEMPTS = 3
BACKOFF_S = 0.1

http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=1.0, trust_env=False)
rec = Recorder()


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
def charge_card(order_id: str, amount_cents: int, idempotency_key: str) -> Any:
    """Charge the card of an order; the service does it once per key."""
    return post("charge_card", order_id=order_id, amount_cents=amount_cents, idempotency_key=idempotency_key)


def charge(order: Any) -> Any:
    """Charge an order once, however often it has to be said."""
    args = {"order_id": order["order_id"], "amount_cents": order["amount_cents"]}
    key = str(uuid.uuid4())
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return charge_card(**args, idempotency_key=key)
        except httpx.TimeoutException:
            if attempt == MAX_ATTEMPTS:
                raise
            rec.decision("retry", reason="timeout", delay_ms=BACKOFF_S * 1000)
            time.sleep(BACKOFF_S)
    raise AssertionError("the last attempt returns or raises")


with rec:
    with rec.turn():
        order = get_order(order_ref="A-17")
    with rec.turn():
        charged = charge(order)
    rec.end("success" if charged["status"] == "succeeded" else "failed", "final_answer")
