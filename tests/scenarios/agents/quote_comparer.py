"""Compares three carriers at the same time (Anthropic's SDK, async): one that fails does not cost the other two."""

import asyncio
import json
import os
from typing import Any

import httpx
from anthropic import AsyncAnthropic

from goldentrace import Recorder

SCHEMA = {"type": "object", "properties": {"weight_g": {"type": "integer"}}}
NAMES = ("quote_north", "quote_south", "quote_west", "book_north")
DEFINITIONS: Any = [{"name": name, "input_schema": SCHEMA} for name in NAMES]

rec = Recorder()


async def main() -> None:
    """Let the model compare and book."""
    http = httpx.AsyncClient(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=5.0, trust_env=False)
    model = AsyncAnthropic(api_key="none")

    def tool_of(name: str) -> Any:
        async def tool(weight_g: int) -> Any:
            response = await http.post(f"/tools/{name}", json={"weight_g": weight_g})
            response.raise_for_status()
            return response.json()

        return rec.tool(name=name, access="write" if name.startswith("book") else "read")(tool)

    tools = {name: tool_of(name) for name in NAMES}

    async def call(use: Any) -> Any:
        with rec.call_id(use.id):
            return await tools[use.name](**use.input)

    messages: list[Any] = [{"role": "user", "content": "Send 800 g the cheapest way"}]
    with rec:
        while True:
            with rec.turn() as turn:
                reply = await model.messages.create(
                    model="claude-x", max_tokens=500, messages=messages, tools=DEFINITIONS
                )
                turn.response(model=reply.model, usage=reply.usage)
                uses = [block for block in reply.content if block.type == "tool_use"]
                done = await asyncio.gather(*(call(use) for use in uses), return_exceptions=True)
            results: list[Any] = []
            for use, value in zip(uses, done, strict=True):
                is_error = isinstance(value, Exception)
                content = str(value) if is_error else json.dumps(value)
                results.append({"type": "tool_result", "tool_use_id": use.id, "content": content, "is_error": is_error})
            messages.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
            messages.append({"role": "user", "content": results})
            if not uses:
                break
        rec.end("success", "final_answer")


asyncio.run(main())
