"""Tells an exchange rate. The model through Anthropic's SDK; an answer that cannot be read is no rate."""

import json
import os
from typing import Any

import httpx
from anthropic import Anthropic

from goldentrace import Recorder

SCHEMA = {"type": "object", "properties": {"pair": {"type": "string"}}}
TOOLS: Any = [{"name": "get_rate", "input_schema": SCHEMA}]

model = Anthropic(api_key="none")
http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=5.0, trust_env=False)
rec = Recorder()


@rec.tool(access="read")
def get_rate(pair: str) -> Any:
    """Ask the exchange for the rate of a pair of currencies."""
    response = http.post("/tools/get_rate", json={"pair": pair})
    response.raise_for_status()
    return json.loads(response.text)


def call(use: Any) -> dict[str, Any]:
    """Return the block that tells the model how its call ended."""
    try:
        with rec.call_id(use.id):
            content = json.dumps(get_rate(**use.input))
    except ValueError:
        rec.decision("abort", reason="malformed_json")
        error = "the exchange sent something that is no rate"
        return {"type": "tool_result", "tool_use_id": use.id, "content": error, "is_error": True}
    return {"type": "tool_result", "tool_use_id": use.id, "content": content}


messages: list[Any] = [{"role": "user", "content": "How many dollars is a euro?"}]
has_failed = False
with rec:
    while True:
        with rec.turn() as turn:
            reply = model.messages.create(model="claude-x", max_tokens=500, messages=messages, tools=TOOLS)
            turn.response(model=reply.model, usage=reply.usage)
            results = [call(block) for block in reply.content if block.type == "tool_use"]
            has_failed = has_failed or any(result.get("is_error") for result in results)
            messages.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
            messages.append({"role": "user", "content": results})
        if not results:
            break
    rec.end("partial" if has_failed else "success", "final_answer")
