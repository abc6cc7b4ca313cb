"""The presets against the clients they are named after: the delays that the installed libraries ask for themselves.

Every client runs its own retry loop with a transport that always fails and a sleep that only takes notes, so no time
passes and no formula is repeated here.
"""

import importlib
import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from goldentrace.match.backoff import Policy, band
from tests.match.backoff_simulation import changes

RUNS = 200
Sleeps = list[float]


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> Sleeps:
    """Return the list of seconds that the code under test wanted to sleep; it sleeps none of them."""
    wanted: Sleeps = []
    monkeypatch.setattr(time, "sleep", wanted.append)
    return wanted


def openai_like(name: str, retries: int, headers: dict[str, str] | None = None) -> Callable[[], None]:
    """One chat request of the OpenAI or Anthropic SDK that gets 429 or 500 every time."""
    sdk = pytest.importorskip(name, reason=f"{name} is not installed")
    base = importlib.import_module(f"{name}._base_client")
    http = getattr(base, "httpx2", None) or base.httpx
    status = 429 if headers else 500

    def answer(request: Any) -> Any:
        return http.Response(status, headers=headers, json={"error": {"message": "no"}}, request=request)

    maker = sdk.OpenAI if name == "openai" else sdk.Anthropic
    transport = http.Client(transport=http.MockTransport(answer))
    client = maker(api_key="none", base_url="http://127.0.0.1:9", max_retries=retries, http_client=transport)
    ask = client.chat.completions.create if name == "openai" else client.messages.create

    def run() -> None:
        with pytest.raises(sdk.APIStatusError):
            ask(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])

    return run


def google_genai(retries: int) -> Callable[[], None]:
    genai = pytest.importorskip("google.genai", reason="google-genai is not installed")
    http = importlib.import_module("google.genai._api_client").httpx
    types = importlib.import_module("google.genai.types")
    errors = importlib.import_module("google.genai.errors")
    transport = http.MockTransport(lambda request: http.Response(503, json={"error": {"message": "no"}}))
    options = types.HttpOptions(
        base_url="http://127.0.0.1:9",
        retry_options=types.HttpRetryOptions(attempts=retries + 1),
        client_args={"transport": transport},
    )
    client = genai.Client(api_key="none", http_options=options)

    def run() -> None:
        with pytest.raises(errors.APIError):
            client.models.generate_content(model="m", contents="x")

    return run


def urllib3_retry(retries: int, sleeps: Sleeps) -> Callable[[], None]:
    urllib3 = pytest.importorskip("urllib3", reason="urllib3 is not installed")

    def run() -> None:
        state = urllib3.Retry(total=retries, backoff_factor=0.2, status_forcelist=[500])
        for place in range(retries):
            answer = urllib3.HTTPResponse(status=500, preload_content=False)
            state = state.increment("GET", "/", response=answer)
            state.sleep(answer)
            if len(sleeps) == place:
                sleeps.append(0.0)  # a wait of 0 is none that it sleeps

    return run


def httpx_retries(retries: int) -> Callable[[], None]:
    library = pytest.importorskip("httpx_retries", reason="httpx-retries is not installed")
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    retry = library.Retry(total=retries, backoff_factor=0.5)
    inner = httpx.MockTransport(lambda request: httpx.Response(503))

    def run() -> None:
        with httpx.Client(transport=library.RetryTransport(transport=inner, retry=retry)) as client:
            assert client.get("http://127.0.0.1:9/").status_code == 503

    return run


def fail() -> None:
    raise ValueError("always")


def tenacity_retry(retries: int) -> Callable[[], None]:
    tenacity = pytest.importorskip("tenacity", reason="tenacity is not installed")
    loop = tenacity.Retrying(
        wait=tenacity.wait_exponential_jitter(), stop=tenacity.stop_after_attempt(retries + 1), reraise=True
    )

    def run() -> None:
        with pytest.raises(ValueError, match="always"):
            loop(fail)

    return run


def stamina_retry(retries: int) -> Callable[[], None]:
    stamina = pytest.importorskip("stamina", reason="stamina is not installed")
    once = stamina.retry(on=ValueError, attempts=retries + 1, timeout=None)(fail)

    def run() -> None:
        with pytest.raises(ValueError, match="always"):
            once()

    return run


def backoff_expo(retries: int) -> Callable[[], None]:
    library = pytest.importorskip("backoff", reason="backoff is not installed")
    once = library.on_exception(library.expo, ValueError, max_tries=retries + 1)(fail)

    def run() -> None:
        with pytest.raises(ValueError, match="always"):
            once()

    return run


@dataclass(frozen=True)
class Client:
    """A preset, the client that it describes, and how often half of its waits has to be caught with 2 and 4 retries."""

    policy: dict[str, Any]
    start: Callable[[int, Sleeps], Callable[[], None]]
    half_caught: tuple[tuple[float, float], tuple[float, float]]


ALL = ((1.0, 1.0), (1.0, 1.0))
CLIENTS = {
    "openai": Client({"policy": "openai"}, lambda retries, _: openai_like("openai", retries), ALL),
    "anthropic": Client({"policy": "anthropic"}, lambda retries, _: openai_like("anthropic", retries), ALL),
    "google-genai": Client({"policy": "google-genai"}, lambda retries, _: google_genai(retries), ALL),
    "urllib3": Client({"policy": "urllib3", "base_ms": 200}, urllib3_retry, ALL),
    "httpx-retries": Client(
        {"policy": "httpx-retries", "base_ms": 1000}, lambda retries, _: httpx_retries(retries), ((0, 0.02), (0, 0.02))
    ),
    "tenacity": Client({"policy": "tenacity"}, lambda retries, _: tenacity_retry(retries), ALL),
    # Jitter of one second on a first wait of 0.1 s: half of most draws is another honest draw.
    "stamina": Client({"policy": "stamina"}, lambda retries, _: stamina_retry(retries), ((0.15, 0.4), (0.8, 0.97))),
    "backoff": Client({"policy": "backoff"}, lambda retries, _: backoff_expo(retries), ((0, 0.02), (0, 0.02))),
}


def waits_of_runs(client: Client, retries: int, sleeps: Sleeps) -> list[list[float]]:
    """Return the waits in ms of RUNS seeded runs of the real client."""
    run = client.start(retries, sleeps)
    waits = []
    for seed in range(RUNS):
        sleeps.clear()
        random.seed(seed)
        run()
        waits.append([1000 * second for second in sleeps])
    assert {len(run) for run in waits} == {retries}, "the client made another number of retries than it was asked for"
    return waits


@pytest.mark.parametrize("retries", [2, 4])
@pytest.mark.parametrize("name", CLIENTS)
def test_preset_describes_the_client(name: str, retries: int, sleeps: Sleeps) -> None:
    client = CLIENTS[name]
    policy = Policy.from_mapping(client.policy)
    runs = waits_of_runs(client, retries, sleeps)

    for run in runs:
        for place, wait in enumerate(run):
            low, high = band(policy, place + 1, run[place - 1] if place else None)
            assert low - 1e-6 <= wait <= high + 1e-6, f"wait {place + 1} of {wait} ms is not in {low} to {high}"
    pairs = list(zip(runs, runs[1:] + runs[:1], strict=True))

    alarms = [found for golden, now in pairs if (found := changes(golden, now, policy))]
    assert len(alarms) <= 0.0025 * RUNS + 1, [found[0].message for found in alarms]
    if policy.jitter is not None and policy.jitter.kind != "full":
        assert not alarms

    low, high = client.half_caught[retries // 4]
    halves = [bool(changes(golden, [wait / 2 for wait in now], policy)) for golden, now in pairs]
    assert low <= sum(halves) / RUNS <= high

    caught = [bool(changes(golden, [0.0] * retries, policy)) for golden, _ in pairs]
    assert all(caught), "no backoff at all passes"
    seconds = [bool(changes(golden, [wait / 1000 for wait in now], policy)) for golden, now in pairs]
    assert sum(seconds) >= 0.97 * RUNS, "seconds taken for milliseconds pass"


@pytest.mark.parametrize("name", ["openai", "google-genai", "stamina", "backoff"])
def test_plain_relative_tolerance_is_unusable(name: str, sleeps: Sleeps) -> None:
    """Why a band is needed: against one golden, a quarter more or less alarms at honest runs of these clients."""
    runs = waits_of_runs(CLIENTS[name], 4, sleeps)
    plain = Policy.from_mapping({"relative": 0.25})
    alarms = sum(bool(changes(golden, now, plain)) for golden, now in itertools.pairwise(runs))
    assert alarms / RUNS > 0.05


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("headers", "wanted_ms"),
    [
        ({"retry-after-ms": "300", "retry-after": "9"}, 300),
        ({"retry-after": "2"}, 2000),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
    ],
)
def test_what_the_sdks_do_with_retry_after(
    name: str, headers: dict[str, str], wanted_ms: float | None, sleeps: Sleeps
) -> None:
    """They wait exactly what is owed, also below their formula, and fall back to it where nothing is."""
    openai_like(name, 2, headers)()
    policy = Policy.from_mapping({"policy": name})
    for place, seconds in enumerate(sleeps):
        if wanted_ms is None:
            low, high = band(policy, place + 1)
            assert low <= 1000 * seconds <= high
        else:
            assert 1000 * seconds == pytest.approx(wanted_ms)
    assert len(sleeps) == 2


@pytest.mark.parametrize(("name", "attempts"), [("openai", 1), ("anthropic", 3)])
def test_limit_on_what_may_be_owed(name: str, attempts: int, sleeps: Sleeps) -> None:
    openai_like(name, 2, {"retry-after": "200"})()
    limit = Policy.from_mapping({"policy": name}).retry_after.abort_above_ms
    assert len(sleeps) + 1 == attempts
    assert (limit is not None and limit < 200_000) == (attempts == 1)


def test_google_genai_makes_one_attempt_unless_told_otherwise(sleeps: Sleeps) -> None:
    google_genai(0)()
    assert sleeps == []


@pytest.mark.parametrize(
    ("module", "read"),
    [
        ("openai", lambda sdk: sdk.DEFAULT_MAX_RETRIES + 1),
        ("anthropic", lambda sdk: sdk.DEFAULT_MAX_RETRIES + 1),
        ("urllib3", lambda library: library.Retry().total + 1),
        ("httpx_retries", lambda library: library.Retry().total + 1),
    ],
)
def test_how_many_attempts_the_preset_says(module: str, read: Callable[[Any], int]) -> None:
    library = pytest.importorskip(module, reason=f"{module} is not installed")
    assert Policy.from_mapping({"policy": module.replace("_", "-")}).max_attempts == read(library)
