"""Books a room. The model through OpenAI's SDK (Responses); what the service refuses is the model's to correct."""

import json
import os
import time
from typing import Any

import httpx
from openai import OpenAI

from goldentrace import Recorder

MAX_ATTEMPTS = 3
BACKOFF_S = 0.1
WORTH_A_RETRY = (429, 502, 503, 504)
SCHEMA = {"type": "object", "properties": {"room": {"type": "string"}, "date": {"type": "string"}}}
TOOLS: Any = [{"type": "function", "name": "book_room", "parameters": SCHEMA, "strict": False}]

model = OpenAI(api_key="none")
http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=5.0, trust_env=False)
rec = Recorder()


@rec.tool(access="write")
def book_room(room: str, date: str) -> Any:
    """Book a room for a day."""
    response = http.post("/tools/book_room", json={"room": room, "date": date})
    response.raise_for_status()
    return response.json()


def call(args: dict[str, Any]) -> Any:
    """Book, and return what the model is to know of it: the booking, or why there is none."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return book_room(**args)
        except httpx.HTTPStatusError as error:
            if error.response.status_code not in WORTH_A_RETRY or attempt == MAX_ATTEMPTS:
                return {"is_error": True, "error": error.response.text}
            delay_s = BACKOFF_S * 2 ** (attempt - 1)
            rec.decision("retry", reason="unavailable", delay_ms=delay_s * 1000)
            time.sleep(delay_s)
    raise AssertionError("the last attempt returns")


items: list[Any] = [{"role": "user", "content": "Book the blue room for new year's eve"}]
with rec:
    while True:
        with rec.turn() as turn:
            reply = model.responses.create(model="gpt-x", input=items, tools=TOOLS)
            turn.response(model=reply.model, usage=reply.usage)
            calls = [item for item in reply.output if item.type == "function_call"]
            items += [item.model_dump(exclude_none=True) for item in reply.output]
            for item in calls:
                with rec.call_id(item.call_id):
                    output = json.dumps(call(json.loads(item.arguments)))
                items.append({"type": "function_call_output", "call_id": item.call_id, "output": output})
        if not calls:
            break
    rec.end("success", "final_answer")
