"""The run that every library is led through: five responses, five calls of tools, one of which fails once.

An id that one result holds is an argument of all later calls, two calls are asked for together, one argument is no
ASCII. The tools and the script of the model are the same for each library, so that their exports can be equal.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

PROMPT: Final = "Refund the open order of Zoë Ångström, 東京."
CUSTOMER: Final = "Zoë Ångström, 東京"
ORDER_ID: Final = "0b9f6a0e-51d4-4c7e-9d0b-3f1f2c7a8e55"
FAILURE: Final = "the ledger is locked, try again"
ANSWER: Final = "Refunded 1250 cents to Zoë Ångström."

LAG_S: Final = 0.01
"""What a tool waits, so that two that were asked for together run together."""


@dataclass(frozen=True)
class Asked:
    """One call that the model asks for."""

    call_id: str
    tool_name: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Response:
    """One response of the model: calls, or the answer."""

    calls: tuple[Asked, ...] = ()
    text: str = ""


SCRIPT: Final = (
    Response((Asked("call_1", "find_order", {"customer": CUSTOMER}),)),
    Response(
        (
            Asked("call_2", "read_stock", {"order_id": ORDER_ID}),
            Asked("call_3", "read_address", {"order_id": ORDER_ID}),
        )
    ),
    Response((Asked("call_4", "refund", {"order_id": ORDER_ID, "cents": 1250}),)),
    Response((Asked("call_5", "refund", {"order_id": ORDER_ID, "cents": 1250}),)),
    Response(text=ANSWER),
)


class Ledger:
    """The tools. refund raises `failure` the first time."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure
        self._refunds = 0

    async def find_order(self, customer: str) -> dict[str, Any]:
        """Find the open order of a customer."""
        return {"order_id": ORDER_ID, "customer": customer, "state": "open"}

    async def read_stock(self, order_id: str) -> dict[str, Any]:
        """Read the stock behind an order."""
        await asyncio.sleep(LAG_S)
        return {"order": order_id, "pieces": 3}

    async def read_address(self, order_id: str) -> dict[str, Any]:
        """Read the address of an order."""
        await asyncio.sleep(LAG_S)
        return {"order": order_id, "city": "東京"}

    async def refund(self, order_id: str, cents: int) -> dict[str, Any]:
        """Refund an order."""
        self._refunds += 1
        if self._refunds == 1:
            raise self._failure
        return {"order": order_id, "refunded_cents": cents}

    @property
    def tools(self) -> tuple[Any, ...]:
        return (self.find_order, self.read_stock, self.read_address, self.refund)


@dataclass
class Script:
    """The model: gives the responses of the script one after another."""

    given: int = 0

    def next(self) -> Response:
        """Return the next response."""
        self.given += 1
        return SCRIPT[self.given - 1]
