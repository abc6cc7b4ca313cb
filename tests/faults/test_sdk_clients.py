"""What the OpenAI and Anthropic SDKs make of faults: which they repeat, how long they wait, and which reach the agent raw.

All calls of one SDK run at once against one server, so that their backoffs pass together.
"""

import asyncio
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from goldentrace.faults import FaultsHandle
from goldentrace.model.event import ToolCall
from tests.faults.serving import served

STEPS = {
    "empty": "{fault: empty_reply}",
    "reset": "{fault: reset}",
    "partial": "{fault: partial_body}",
    "bad-chunk": "{fault: bad_chunk}",
    "hang": "{fault: hang}",
    "malformed": "{fault: malformed_json}",
    "short": "{fault: short_length}",
    "bad-utf8": "{fault: bad_utf8}",
    "bad-request": "{fault: status, status: 400}",
    "conflict": "{fault: status, status: 409, retry_after_ms: 10}",
    "server-error": "{fault: status, status: 500}",
    "ms-first": "{fault: status, status: 500, retry_after: 9, retry_after_ms: 60}",
    "told-not-to": '{fault: status, status: 500, headers: {x-should-retry: "false"}}',
    "junk-wait": "{fault: status, status: 429, retry_after: {raw: soon}}",
    "long-wait": "{fault: status, status: 429, retry_after: 200}",
}
CONNECTION, RAW = "APIConnectionError", ("JSONDecodeError", "UnicodeDecodeError")
EXPECTED = {
    "empty": (CONNECTION, 3),
    "reset": (CONNECTION, 3),
    "partial": (CONNECTION, 3),
    "bad-chunk": (CONNECTION, 3),
    "hang": ("APITimeoutError", 3),
    "malformed": ("JSONDecodeError", 1),
    "short": ("JSONDecodeError", 1),
    "bad-utf8": ("UnicodeDecodeError", 1),
    "bad-request": ("BadRequestError", 1),
    "conflict": ("ConflictError", 3),
    "server-error": ("InternalServerError", 3),
    "ms-first": ("InternalServerError", 3),
    "told-not-to": ("InternalServerError", 1),
    "junk-wait": ("RateLimitError", 3),
}
"""Fault -> the class that the agent's code catches, and how many requests arrived (two retries by default)."""

CHAT = """{id: "chatcmpl-{new_id}", object: chat.completion, created: 1, model: m,
           choices: [{index: 0, finish_reason: stop, message: {role: assistant, content: hi}}]}"""
MESSAGE = """{id: "msg_{new_id}", type: message, role: assistant, model: m, content: [{type: text, text: hi}],
              stop_reason: end_turn, stop_sequence: null, usage: {input_tokens: 1, output_tokens: 1}}"""


@dataclass(frozen=True)
class Sdk:
    """One SDK. ask: (library, base URL, timeout) -> awaitable of one model call."""

    path: str
    result: str
    ask: Callable[[Any, str, float], Any]


async def ask_openai(openai: Any, url: str, timeout_s: float) -> None:
    async with openai.AsyncOpenAI(base_url=url, api_key="none", timeout=timeout_s) as client:
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])


async def ask_anthropic(anthropic: Any, url: str, timeout_s: float) -> None:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", timeout=timeout_s) as client:
        await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])


SDKS = {
    "openai": Sdk("chat/completions", CHAT, ask_openai),
    "anthropic": Sdk("v1/messages", MESSAGE, ask_anthropic),
}


@dataclass
class Seen:
    """What all the calls of one SDK came to."""

    errors: dict[str, str]
    calls: dict[str, list[ToolCall]]
    waiting: bool

    def gaps_ms(self, fault: str) -> list[float]:
        """From arrival to arrival, which is what the server sees of a wait (the replies here take no time)."""
        times = [call.mono_ns or 0 for call in self.calls[fault]]
        return [(later - earlier) / 1e6 for earlier, later in pairwise(times)]


@pytest.fixture(scope="module", params=SDKS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Run every fault against one SDK, each call as an agent makes it: the SDK's own retries, nothing else."""
    name: str = request.param
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    importlib.import_module(name)
    sdk = SDKS[name]
    tools = "".join(
        f"  {fault}: {{route: POST /{fault}/{sdk.path}, result: {sdk.result}, steps: [{step}], after_steps: repeat}}\n"
        for fault, step in STEPS.items()
    )
    folder: Path = tmp_path_factory.mktemp(name)
    with served(folder, f"plan: sdk\ntools:\n{tools}") as server:
        return asyncio.run(run_all(sdk, library, server))


async def run_all(sdk: Sdk, library: Any, server: FaultsHandle) -> Seen:
    errors: dict[str, str] = {}

    async def one(fault: str) -> None:
        try:
            await sdk.ask(library, f"{server.url}/{fault}", 0.3 if fault == "hang" else 30.0)
        except (library.APIError, ValueError) as error:
            errors[fault] = type(error).__name__

    tasks = {fault: asyncio.create_task(one(fault)) for fault in STEPS}
    await asyncio.wait([tasks[fault] for fault in EXPECTED], timeout=30)
    waiting = not tasks["long-wait"].done()
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    calls: dict[str, list[ToolCall]] = {fault: [] for fault in STEPS}
    for event in server.events():
        if isinstance(event, ToolCall):
            calls[event.tool_name].append(event)
    assert server.failures() == []
    return Seen(errors, calls, waiting)


@pytest.mark.parametrize("fault", EXPECTED)
def test_an_sdk_makes_this_of_a_fault(seen: Seen, fault: str) -> None:
    error, arrivals = EXPECTED[fault]
    assert (seen.errors[fault], len(seen.calls[fault])) == (error, arrivals)


def test_what_is_no_connection_error_reaches_the_agent_raw_and_once(seen: Seen) -> None:
    for fault in ("malformed", "short", "bad-utf8"):
        assert seen.errors[fault] in RAW
        assert len(seen.calls[fault]) == 1


@pytest.mark.parametrize("fault", ["empty", "server-error", "junk-wait"])
def test_an_sdk_waits_half_a_second_doubled_less_a_quarter(seen: Seen, fault: str) -> None:
    first, second = seen.gaps_ms(fault)
    assert first >= 370
    assert second >= 740


def test_the_ms_header_goes_before_retry_after(seen: Seen) -> None:
    assert all(60 <= gap < 3000 for gap in seen.gaps_ms("ms-first")), "nine seconds were asked for by the other header"


def test_a_wait_of_minutes_is_given_up_by_one_sdk_and_kept_by_the_other(
    seen: Seen, request: pytest.FixtureRequest
) -> None:
    assert len(seen.calls["long-wait"]) == 1
    if "openai" in request.node.name:
        assert seen.errors["long-wait"] == "RateLimitError", "more than 120 s is no reason to wait"
    else:
        assert seen.waiting


def test_the_journal_gives_an_sdks_retries_to_the_sdk(seen: Seen) -> None:
    calls = seen.calls["server-error"]
    assert [(call.attempt, call.origin) for call in calls] == [(1, "model"), (2, "sdk"), (3, "sdk")]
    assert calls[0].op_id is None
    assert {call.op_id for call in calls[1:]} == {calls[0].call_id}


def test_neither_sdk_sends_an_idempotency_key(seen: Seen) -> None:
    assert {call.idempotency_key for calls in seen.calls.values() for call in calls} == {None}


def test_google_does_not_retry_by_default_and_ignores_retry_after(tmp_path: Path) -> None:
    genai = pytest.importorskip("google.genai", reason="google-genai is not installed")
    route = "POST /v1/models/{model}"
    step = "{fault: status, status: 429, retry_after: 9}"
    with served(
        tmp_path, f'plan: p\ntools:\n  t: {{route: "{route}", steps: [{step}], after_steps: repeat}}\n'
    ) as server:
        options = {"base_url": server.url, "timeout": 20_000, "api_version": "v1"}
        plain = genai.Client(api_key="none", http_options=options)
        with pytest.raises(genai.errors.ClientError):
            plain.models.generate_content(model="m", contents="x")
        assert server.ready()["calls"] == 1
        server.reset()
        retrying = {**options, "retry_options": {"attempts": 2, "initial_delay": 0.05}}
        patient = genai.Client(api_key="none", http_options=retrying)
        begun = time.monotonic()
        with pytest.raises(genai.errors.ClientError):
            patient.models.generate_content(model="m", contents="x")
        assert server.ready()["calls"] == 2
        assert time.monotonic() - begun < 8, "the server asked for nine seconds"


def test_urllib3_does_not_repeat_a_post_and_chokes_on_a_junk_wait(tmp_path: Path) -> None:
    urllib3 = pytest.importorskip("urllib3", reason="urllib3 is not installed")
    steps = "[{fault: status, status: 503, retry_after: 0}, {fault: none}]"
    junk = "[{fault: status, status: 503, retry_after: {raw: '0.7'}}]"
    text = f"""
plan: p
tools:
  post: {{steps: {steps}, after_steps: ok}}
  get: {{route: GET /get, steps: {steps}, after_steps: ok}}
  junk: {{route: GET /junk, steps: {junk}, after_steps: repeat}}
"""
    retry = urllib3.Retry(total=2, status_forcelist=[503])
    with served(tmp_path, text) as server, urllib3.PoolManager(retries=retry) as pool:
        assert pool.request("POST", f"{server.url}/tools/post", json={}).status == 503
        assert pool.request("GET", f"{server.url}/get").status == 200
        with pytest.raises(urllib3.exceptions.InvalidHeader):
            pool.request("GET", f"{server.url}/junk")
        assert [call["tool"] for call in server.calls()] == ["post", "get", "get", "junk"]
