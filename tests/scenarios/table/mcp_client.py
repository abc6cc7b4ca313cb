"""An agent over MCP that gives an error to the model, as a result, or forgets to.

python mcp_client.py '{"gives_errors": true}'
"""

import asyncio
import json
import os
import sys
from typing import Any

from mcp import MCPError
from mcp.client.client import Client

from goldentrace import Recorder

gives_errors = json.loads(sys.argv[1])["gives_errors"]
rec = Recorder()


class ToolError(Exception):
    """The tool says that it failed."""


async def main() -> None:
    """Call a tool that fails in its result, then one that fails below it; ask the model what to make of each."""
    async with Client(os.environ["GOLDENTRACE_MCP_URL"], read_timeout_seconds=5) as client:

        def tool_named(name: str) -> Any:
            async def ask() -> Any:
                result = await client.call_tool(name, {})
                if result.is_error:
                    raise ToolError(str(result.content))
                return result.structured_content

            return rec.tool(name=name, access="read")(ask)

        with rec:
            given: list[str] = []
            for tool in ("in_its_result", "below_it"):
                with rec.turn(input_call_ids=given), rec.call_id(f"call_{tool}"):
                    try:
                        await tool_named(tool)()
                    except (ToolError, MCPError):
                        given = [f"call_{tool}"] if gives_errors else []
            with rec.turn(input_call_ids=given):
                rec.message("assistant", "Neither of them works.")
            rec.end("failed", "final_answer")


asyncio.run(main())
