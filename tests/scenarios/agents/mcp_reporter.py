"""Reports how many orders are open, from an MCP server that hands them out page by page."""

import asyncio
import os
from typing import Any

from mcp.client.client import Client

from goldentrace import Recorder

MAX_PAGES = 10

rec = Recorder()


async def main() -> None:
    """Do what a model would have planned for: "How many orders are open? Tell the shop"."""
    async with Client(os.environ["GOLDENTRACE_MCP_URL"], read_timeout_seconds=10) as client:

        @rec.tool(access="read")
        async def list_orders(state: str, cursor: str | None = None) -> Any:
            args = {"state": state} if cursor is None else {"state": state, "cursor": cursor}
            return (await client.call_tool("list_orders", args)).structured_content

        @rec.tool(access="write")
        async def send_report(count: int) -> Any:
            return (await client.call_tool("send_report", {"count": count})).structured_content

        with rec:
            orders: list[Any] = []
            cursor: str | None = None
            for _ in range(MAX_PAGES):
                with rec.turn():
                    page = await list_orders("open", cursor) if cursor else await list_orders("open")
                orders += page["orders"]
                cursor = page.get("next_cursor")
                if cursor is None:
                    break
            with rec.turn():
                await send_report(len(orders))
            rec.end("success" if cursor is None else "partial", "final_answer")


asyncio.run(main())
