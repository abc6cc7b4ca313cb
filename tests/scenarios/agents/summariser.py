"""Summarises a document. The model through Anthropic's SDK, the archive through httpx with waits that grow."""

import json
import os
import time
from typing import Any

import httpx
from anthropic import Anthropic

from goldentrace import Recorder

MAX_ATTEMPTS = 4
BACKOFF_S = 0.1
SCHEMA = {"type": "object", "properties": {"document_id": {"type": "string"}}}
TOOLS: Any = [{"name": "fetch_document", "input_schema": SCHEMA}]

model = Anthropic(api_key="none")
http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=5.0, trust_env=False)
rec = Recorder()


@rec.tool(access="read")
def fetch_document(document_id: str) -> Any:
    """Read one document of the archive."""
    response = http.post("/tools/fetch_document", json={"document_id": document_id})
    response.raise_for_status()
    return response.json()


def call(args: dict[str, Any]) -> Any:
    """Read; give an archive that is down twice as long each time."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return fetch_document(**args)
        except httpx.HTTPStatusError as error:
            if error.response.status_code not in (502, 503, 504) or attempt == MAX_ATTEMPTS:
                raise
            delay_s = BACKOFF_S * 2 ** (attempt - 1)
            rec.decision("retry", reason="unavailable", delay_ms=delay_s * 1000)
            time.sleep(delay_s)
    raise AssertionError("the last attempt returns or raises")


messages: list[Any] = [{"role": "user", "content": "Summarise doc-9"}]
with rec:
    while True:
        with rec.turn() as turn:
            reply = model.messages.create(model="claude-x", max_tokens=500, messages=messages, tools=TOOLS)
            turn.response(model=reply.model, usage=reply.usage)
            results: list[Any] = []
            for block in reply.content:
                if block.type == "tool_use":
                    with rec.call_id(block.id):
                        text = json.dumps(call(block.input))
                    results.append({"type": "tool_result", "tool_use_id": block.id, "content": text})
            messages.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
            messages.append({"role": "user", "content": results})
        if not results:
            break
    rec.end("success", "final_answer")
