"""Pays an invoice through an MCP server, with the official client: after silence it looks before it pays again."""

import asyncio
import os
import uuid
from typing import Any

from mcp import MCPError
from mcp.client.client import Client

from goldentrace import Recorder

TIMEOUT_S = 1.0

rec = Recorder()


async def call(client: Client, tool: str, args: dict[str, Any]) -> Any:
    """Call a tool of the server. Raises: TimeoutError where no answer came in time."""
    try:
        result = await client.call_tool(tool, args)
    except MCPError as error:
        if "timed out" in str(error):
            raise TimeoutError(str(error)) from None
        raise
    return result.structured_content


async def pay(client: Client) -> Any:
    """Pay the invoice once."""

    @rec.tool(access="write", idempotency_key="{idempotency_key}")
    async def pay_invoice(invoice: str, amount_cents: int, idempotency_key: str) -> Any:
        args = {"invoice": invoice, "amount_cents": amount_cents, "idempotency_key": idempotency_key}
        return await call(client, "pay_invoice", args)

    @rec.tool(access="read")
    async def find_payment(idempotency_key: str) -> Any:
        return await call(client, "find_payment", {"idempotency_key": idempotency_key})

    key = str(uuid.uuid4())
    try:
        return await pay_invoice("INV-3", 1999, key)
    except TimeoutError:
        rec.decision("reconcile", reason="timeout")
        with rec.origin("harness"):
            found = await find_payment(key)
        if found["found"]:
            return found
        rec.decision("retry", reason="not_committed")
    return await pay_invoice("INV-3", 1999, key)


async def main() -> None:
    """Do what a model would have planned for: "Pay invoice INV-3"."""
    with rec:
        async with Client(os.environ["GOLDENTRACE_MCP_URL"], read_timeout_seconds=TIMEOUT_S) as client:
            with rec.turn():
                await pay(client)
        rec.end("success", "final_answer")


asyncio.run(main())
