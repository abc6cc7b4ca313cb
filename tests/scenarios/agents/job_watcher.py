"""Watches a job for a model that does not know when to stop (OpenAI's SDK, Chat Completions): the loop does."""

import json
import os
from typing import Any

import httpx
from openai import OpenAI

from goldentrace import Recorder

MAX_EQUAL_RESULTS = 3
SCHEMA = {"type": "object", "properties": {"job": {"type": "string"}}}
TOOLS: Any = [{"type": "function", "function": {"name": "get_job", "parameters": SCHEMA}}]

model = OpenAI(api_key="none")
http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=5.0, trust_env=False)
rec = Recorder()


@rec.tool(access="read")
def get_job(job: str) -> Any:
    """Ask how far a job is."""
    response = http.post("/tools/get_job", json={"job": job})
    response.raise_for_status()
    return response.json()


def run() -> None:
    """Let the model work until it answers, or until nothing new comes of it."""
    messages: list[Any] = [{"role": "user", "content": "Tell me when job 8 is done"}]
    seen: list[str] = []
    while True:
        with rec.turn() as turn:
            reply = model.chat.completions.create(model="gpt-x", messages=messages, tools=TOOLS)
            turn.response(model=reply.model, usage=reply.usage)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            for tool_call in message.tool_calls or []:
                with rec.call_id(tool_call.id):
                    content = json.dumps(get_job(**json.loads(tool_call.function.arguments)))
                messages.append({"role": "tool", "tool_call_id": tool_call.id, "content": content})
                seen.append(f"{tool_call.function.name} {tool_call.function.arguments} {content}")
        if not message.tool_calls:
            return rec.end("success", "final_answer")
        if len(seen) >= MAX_EQUAL_RESULTS and len(set(seen[-MAX_EQUAL_RESULTS:])) == 1:
            rec.limit("tool_loop", MAX_EQUAL_RESULTS, MAX_EQUAL_RESULTS)
            return rec.end("aborted", "tool_loop")


with rec:
    run()
