"""Searches flights. The model through OpenAI's SDK (Chat Completions), the tools through httpx with waits for 429."""

import json
import os
import time
from typing import Any

import httpx
from openai import OpenAI

from goldentrace import Recorder

MAX_ATTEMPTS = 3
BACKOFF_S = 0.1
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
TOOLS: Any = [{"type": "function", "function": {"name": "search_flights", "parameters": SCHEMA}}]

model = OpenAI(api_key="none")
http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=5.0, trust_env=False)
rec = Recorder()


@rec.tool(access="read")
def search_flights(to: str) -> Any:
    """Ask the airline."""
    response = http.post("/tools/search_flights", json={"to": to})
    response.raise_for_status()
    return response.json()


def call(args: dict[str, Any]) -> Any:
    """Search; where the airline says when to come back, come back then."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return search_flights(**args)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != 429 or attempt == MAX_ATTEMPTS:
                raise
            delay_s = BACKOFF_S * 2 ** (attempt - 1)
            if "Retry-After" in error.response.headers:
                delay_s = float(error.response.headers["Retry-After"])
            rec.decision("retry", reason="rate_limited", delay_ms=delay_s * 1000)
            time.sleep(delay_s)
    raise AssertionError("the last attempt returns or raises")


messages: list[Any] = [{"role": "user", "content": "Find me a flight to Lisbon"}]
with rec:
    while True:
        with rec.turn() as turn:
            reply = model.chat.completions.create(model="gpt-x", messages=messages, tools=TOOLS)
            turn.response(model=reply.model, usage=reply.usage)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            for tool_call in message.tool_calls or []:
                with rec.call_id(tool_call.id):
                    result = call(json.loads(tool_call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": tool_call.id, "content": json.dumps(result)})
        if not message.tool_calls:
            break
    rec.end("success", "final_answer")
