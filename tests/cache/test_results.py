"""What a cache of tool results gives, keeps and lets go of. Time is a virtual clock."""

import asyncio
import functools
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace import Recorder
from goldentrace.cache import CacheEvent, ToolResultCache
from goldentrace.codec.trace import read_trace
from goldentrace.errors import ConfigError
from goldentrace.model.event import Message, ToolResult


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now_ns = 5_000_000_000

    def monotonic_ns(self) -> int:
        return self.now_ns

    def time_ns(self) -> int:
        return 1_790_000_000_000_000_000 + self.now_ns

    def pass_s(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


class Shop:
    """Tools that count their calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.price = 100

    def look(self, item: Any = "tea", *, unit: str = "kg") -> dict[str, Any]:
        self.calls.append(("look", item, unit))
        return {"item": item, "price": self.price}

    def reprice(self, item: str, price: int) -> str:
        self.calls.append(("reprice", item))
        self.price = price
        return "done"

    def tools(self, **more: Any) -> dict[str, Any]:
        return {
            "look": {"callable": self.look, "access": "read", "resource": "item:{item}", **more},
            "reprice": {"callable": self.reprice, "access": "write", "resource": "item:{item}"},
        }


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shop() -> Shop:
    return Shop()


def wrapped(cache: ToolResultCache, tools: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**{name: entry["callable"] for name, entry in cache.wrap_tools(tools).items()})


def test_an_equal_call_is_answered_without_the_tool(shop: Shop) -> None:
    cache = ToolResultCache()
    tools = wrapped(cache, shop.tools())
    first = tools.look("tea", unit="g")
    assert tools.look(unit="g", item=" tea ") == first == {"item": "tea", "price": 100}
    assert shop.calls == [("look", "tea", "g")]
    assert (cache.counts.hits, cache.counts.misses, len(cache)) == (1, 1, 1)


@pytest.mark.parametrize("other", ["coffee", "Tea", ["tea"], {"a": "tea"}, None, 5])
def test_another_call_is_made(shop: Shop, other: Any) -> None:
    tools = wrapped(ToolResultCache(), shop.tools())
    tools.look("tea")
    assert tools.look(other)["item"] == other
    assert len(shop.calls) == 2


def test_arguments_are_equal_where_the_rules_say_so(shop: Shop) -> None:
    tools = wrapped(ToolResultCache(), shop.tools())
    tools.look({"a": 5, "b": [1, " x"]})
    tools.look({"b": (1.0, "x"), "a": "5"})
    assert len(shop.calls) == 1


def test_an_entry_counts_until_its_time_is_over(clock: Clock, shop: Shop) -> None:
    tools = wrapped(ToolResultCache(ttl_s=600, clock=clock), shop.tools())
    tools.look("tea")
    clock.pass_s(599.9)
    tools.look("tea")
    assert len(shop.calls) == 1
    clock.pass_s(0.2)  # a hit does not make the entry younger
    tools.look("tea")
    assert len(shop.calls) == 2


def test_each_tool_has_its_own_time(clock: Clock) -> None:
    cache = ToolResultCache(ttl_s=10, tool_ttl_s={"slow": None, "quick": 1}, clock=clock)
    made: list[str] = []
    functions = {
        name: cache.tool(name=name)(functools.partial(made.append, name)) for name in ("slow", "quick", "usual")
    }
    for seconds in (0, 5, 100):
        clock.pass_s(seconds)
        for function in functions.values():
            function()
    assert sorted(made) == ["quick", "quick", "quick", "slow", "usual", "usual"]


def test_the_least_recently_used_entry_goes_first(shop: Shop) -> None:
    tools = wrapped(ToolResultCache(max_entries=2), shop.tools())
    for item in ("a", "b", "a", "c", "a", "b"):
        tools.look(item)
    assert [item for _, item, _ in shop.calls] == ["a", "b", "c", "b"]


def test_a_write_elsewhere_leaves_the_order_of_use(shop: Shop) -> None:
    tools = wrapped(ToolResultCache(max_entries=2), shop.tools())
    for item in ("a", "b", "a"):
        tools.look(item)
    tools.reprice("z", 1)
    for item in ("c", "a"):
        tools.look(item)
    assert [call[1] for call in shop.calls] == ["a", "b", "z", "c"]


def test_a_write_lets_go_of_what_it_touches(shop: Shop) -> None:
    cache = ToolResultCache()
    tools = wrapped(cache, shop.tools())
    tools.look("tea")
    tools.look("coffee")
    tools.reprice("tea", 120)
    assert tools.look("tea")["price"] == 120
    tools.look("coffee")
    assert [call[:2] for call in shop.calls] == [
        ("look", "tea"),
        ("look", "coffee"),
        ("reprice", "tea"),
        ("look", "tea"),
    ]
    assert cache.counts.invalidated == 1


def test_a_write_is_never_answered_from_the_cache(shop: Shop) -> None:
    tools = wrapped(ToolResultCache(include=["*"]), shop.tools())
    tools.reprice("tea", 1)
    tools.reprice("tea", 1)
    assert len(shop.calls) == 2


def test_a_write_of_unknown_resource_lets_go_of_everything(shop: Shop) -> None:
    cache = ToolResultCache()
    tools = wrapped(cache, {**shop.tools(), "wipe": {"callable": lambda: None, "access": "write"}})
    tools.look("tea")
    tools.wipe()
    assert len(cache) == 0


@pytest.mark.parametrize(("undeclared", "left"), [("write", 0), ("read", 1)])
def test_a_call_that_nobody_declares_may_be_a_write(shop: Shop, undeclared: Any, left: int) -> None:
    cache = ToolResultCache(undeclared=undeclared)
    tools = wrapped(cache, {**shop.tools(), "odd": {"callable": lambda: 1}})
    tools.look("tea")
    tools.odd()
    assert len(cache) == left


def test_a_failed_write_may_have_taken_effect(shop: Shop) -> None:
    def lost(item: str) -> None:
        raise TimeoutError

    cache = ToolResultCache()
    tools = wrapped(cache, {**shop.tools(), "lost": {"callable": lost, "access": "write", "resource": "item:{item}"}})
    tools.look("tea")
    with pytest.raises(TimeoutError):
        tools.lost("tea")
    assert len(cache) == 0


def test_a_read_that_ran_across_a_write_is_not_kept() -> None:
    started, may_end = threading.Event(), threading.Event()
    cache = ToolResultCache()

    @cache.tool(resource="item:{item}")
    def look(item: str) -> str:
        started.set()
        assert may_end.wait(10)
        return "old"

    @cache.tool(access="write", resource="item:{item}")
    def reprice(item: str) -> None:
        may_end.set()

    reading = threading.Thread(target=look, args=("tea",))
    reading.start()
    assert started.wait(10)
    reprice("tea")
    reading.join()
    assert len(cache) == 0
    look("tea")
    assert len(cache) == 1


@pytest.mark.parametrize("metadata", [{"polling": True}, {"idempotent": False}, {"access": "write"}])
def test_metadata_keeps_a_tool_out(shop: Shop, metadata: dict[str, Any]) -> None:
    cache = ToolResultCache(include=["look"])
    tools = wrapped(cache, shop.tools(**metadata))
    tools.look("tea")
    tools.look("tea")
    assert (len(shop.calls), len(cache)) == (2, 0)


def test_include_takes_a_tool_that_nobody_declares_and_exclude_leaves_one_out(shop: Shop) -> None:
    undeclared = {"look": {"callable": shop.look}}
    for settings, calls in (({}, 2), ({"include": ["lo*"]}, 1), ({"include": ["look"], "exclude": ["look"]}, 2)):
        shop.calls.clear()
        tools = wrapped(ToolResultCache(**settings), undeclared)
        tools.look("tea")
        tools.look("tea")
        assert len(shop.calls) == calls, settings


def test_bypass_goes_past_the_cache(shop: Shop) -> None:
    cache = ToolResultCache(bypass=lambda name, arguments: arguments["item"] == "fresh")
    tools = wrapped(cache, shop.tools())
    for item in ("fresh", "fresh", "tea", "tea"):
        tools.look(item)
    assert [item for _, item, _ in shop.calls] == ["fresh", "fresh", "tea"]
    assert cache.counts.bypassed == 2


def test_annotations_of_mcp_declare_a_read(shop: Shop) -> None:
    entry = SimpleNamespace(func=shop.look, annotations=SimpleNamespace(readOnlyHint=True, destructiveHint=None))
    tools = ToolResultCache().wrap_tools({"look": entry})
    tools["look"].func("tea")
    tools["look"].func("tea")
    assert len(shop.calls) == 1
    assert entry.func == shop.look  # what was given is left as it was


@pytest.mark.parametrize("item", [{1: "a"}, b"tea", float("nan"), Path("tea")])
def test_arguments_that_are_no_json_are_not_kept(shop: Shop, item: Any) -> None:
    cache = ToolResultCache()
    tools = wrapped(cache, shop.tools())
    tools.look(item)
    tools.look(item)
    assert (len(shop.calls), len(cache)) == (2, 0)


def test_exceptions_and_answers_that_say_error_are_not_kept() -> None:
    answers: list[Any] = [ValueError("no"), {"isError": True}, "fine"]
    cache = ToolResultCache()

    @cache.tool()
    def look() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ValueError, match="no"):
        look()
    assert [look(), look(), look()] == [{"isError": True}, "fine", "fine"]


def test_nobody_shares_a_result_with_the_cache(shop: Shop) -> None:
    tools = wrapped(ToolResultCache(), shop.tools())
    tools.look("tea")["price"] = 1
    tools.look("tea")["price"] = 2
    assert tools.look("tea")["price"] == 100
    assert len(shop.calls) == 1


def test_a_stream_is_passed_on_and_not_kept() -> None:
    cache = ToolResultCache()
    rows = cache.tool(name="rows")(lambda: iter([1, 2]))
    assert [list(rows()), list(rows())] == [[1, 2], [1, 2]]
    assert len(cache) == 0


def test_coroutines_are_cached_too() -> None:
    cache = ToolResultCache()
    made: list[int] = []

    @cache.tool()
    async def look(item: int) -> int:
        await asyncio.sleep(0)
        made.append(item)
        if item < 0:
            raise LookupError
        return item * 2

    async def run() -> list[int]:
        with pytest.raises(LookupError):
            await look(-1)
        with pytest.raises(LookupError):
            await look(-1)
        return [await look(1), await look(1), *await asyncio.gather(*(look(2) for _ in range(5)))]

    assert asyncio.iscoroutinefunction(look)
    assert asyncio.run(run()) == [2, 2, 4, 4, 4, 4, 4]
    assert made.count(-1) == 2
    assert made.count(1) == 1


def test_a_cancelled_call_keeps_nothing() -> None:
    cache = ToolResultCache()

    @cache.tool()
    async def look() -> int:
        await asyncio.sleep(60)
        return 1

    async def run() -> None:
        task = asyncio.create_task(look())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert len(cache) == 0


def test_threads_get_what_they_asked_for(clock: Clock) -> None:
    cache = ToolResultCache(ttl_s=1, max_entries=20, clock=clock)
    wrong: list[Any] = []

    @cache.tool(resource="item:{item}")
    def look(item: int) -> list[int]:
        return [item]

    @cache.tool(access="write", resource="item:{item}")
    def change(item: int) -> None:
        clock.pass_s(0.001)

    def work(seed: int) -> None:
        for number in range(300):
            item = (number * seed) % 40
            if look(item) != [item]:
                wrong.append(item)
            if number % 10 == 0:
                change(item)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 3, 7, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cache.counts.hits + cache.counts.misses == 1200
    assert len(cache) <= 20


def test_hits_and_misses_are_told_with_the_age_of_the_entry(clock: Clock, shop: Shop) -> None:
    told: list[CacheEvent] = []
    tools = wrapped(ToolResultCache(clock=clock, on_event=told.append), shop.tools())
    tools.look("tea")
    clock.pass_s(2.5)
    tools.look("tea")
    tools.reprice("tea", 1)
    assert [(event.outcome, event.tool_name, event.age_ms, event.reason) for event in told] == [
        ("miss", "look", None, None), ("hit", "look", 2500.0, None), ("bypass", "reprice", None, "write"),
    ]  # fmt: skip
    assert told[0].key == told[1].key


def test_the_trace_tells_hits_with_their_age(tmp_path: Path, clock: Clock, shop: Shop) -> None:
    path = tmp_path / "run.jsonl"
    with Recorder(path, clock=clock) as rec:
        cache = ToolResultCache(recorder=rec, clock=clock)
        tools = rec.wrap_tools(cache.wrap_tools(shop.tools()))
        with rec.turn():
            tools["look"]["callable"](item="tea")
        clock.pass_s(43)
        with rec.turn():
            tools["look"]["callable"](item="tea")
        rec.end("success", "final_answer")
    trace = read_trace(path.read_bytes(), str(path))
    told = [
        json.loads(event.text or "") for event in trace.events if isinstance(event, Message) and event.role == "cache"
    ]
    assert [(entry["outcome"], entry["tool_name"], entry.get("age_ms")) for entry in told] == [
        ("miss", "look", None),
        ("hit", "look", 43000),
    ]
    results = [bytes(event.result) for event in trace.events if isinstance(event, ToolResult)]
    assert len(results) == 2
    assert results[0] == results[1]
    assert len(shop.calls) == 1


@pytest.mark.parametrize(
    "settings",
    [{"ttl_s": 0}, {"ttl_s": -1}, {"ttl_s": float("nan")}, {"max_entries": 0}, {"include": "look"}, {"tool_ttl_s": {"a": 0}}, {"tools": {"a": {"polling": "yes"}}}],
)  # fmt: skip
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        ToolResultCache(**settings)


def test_an_entry_without_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match="no callable"):
        ToolResultCache().wrap_tools({"look": {"access": "read"}})


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("look"), st.integers(0, 3)),
        st.tuples(st.just("write"), st.integers(0, 3)),
        st.tuples(st.just("pass"), st.integers(1, 7)),
    ),
    max_size=40,
)


@given(steps=STEPS, ttl_s=st.one_of(st.none(), st.integers(1, 12)))
def test_a_cache_does_what_a_dict_with_times_would(steps: list[tuple[str, int]], ttl_s: int | None) -> None:
    clock, cache_told = Clock(), []
    cache = ToolResultCache(ttl_s, clock=clock, on_event=lambda event: cache_told.append(event.outcome))
    versions = dict.fromkeys(range(4), 0)

    @cache.tool(resource="item:{item}")
    def look(item: int) -> int:
        return versions[item]

    @cache.tool(access="write", resource="item:{item}")
    def change(item: int) -> None:
        versions[item] += 1

    known: dict[int, float] = {}
    now_s = 0.0
    for kind, number in steps:
        if kind == "pass":
            now_s += number
            clock.pass_s(number)
        elif kind == "write":
            change(number)
            known.pop(number, None)
        else:
            is_hit = number in known and (ttl_s is None or now_s < known[number] + ttl_s)
            assert look(number) == versions[number]  # never what a write has made old
            assert cache_told[-1] == ("hit" if is_hit else "miss")
            if not is_hit:
                known[number] = now_s
