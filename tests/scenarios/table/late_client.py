"""An agent that gives a request up after a while and asks another one, and uses what the first still brings, or does not.

python late_client.py '{"uses_late": false}'
"""

import asyncio
import json
import os
import sys
from typing import Any

import httpx

from goldentrace import Recorder

PATIENCE_S = 0.3

uses_late = json.loads(sys.argv[1])["uses_late"]
rec = Recorder()


async def main() -> None:
    """Ask for a quote, give up, ask another carrier, book."""
    async with httpx.AsyncClient(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=5, trust_env=False) as http:

        async def post(tool: str, args: dict[str, Any]) -> Any:
            return (await http.post(f"/tools/{tool}", json=args)).json()

        async def ask(tool: str, **args: Any) -> Any:
            call = rec.call(tool, args, access="write" if tool == "book" else "read")
            found = await post(tool, args)
            rec.result(call, found)
            return found

        with rec:
            with rec.turn():
                slow = rec.call("slow_quote", {}, access="read")
                task = asyncio.create_task(post("slow_quote", {}))
                await asyncio.wait([task], timeout=PATIENCE_S)
                rec.result(slow, status="cancelled")
            with rec.turn():
                quote = await ask("quick_quote")
            late = await task
            if uses_late:
                rec.result(slow, late)
                quote = late
            with rec.turn():
                await ask("book", quote_id=quote["quote_id"])
            rec.end("success", "final_answer")


asyncio.run(main())
