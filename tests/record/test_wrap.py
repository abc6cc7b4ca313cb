"""A wrapped tool behaves as the tool does, of whatever kind it is, and each of its calls is recorded."""

import asyncio
import dataclasses
import functools
import inspect
import types
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

import httpx
import pytest

from goldentrace import Recorder
from goldentrace.errors import ConfigError
from tests.record.conftest import Run
from tests.record.langchain_shapes import BaseTool, StructuredTool, tool


def one(events: list[dict[str, Any]]) -> dict[str, Any]:
    (event,) = events
    return event


# --- kinds of callables ----------------------------------------------------------------------------------------------


def plain(x: int) -> int:
    return x + 1


async def coroutine(x: int) -> int:
    await asyncio.sleep(0)
    return x + 1


class Instance:
    def __call__(self, x: int) -> int:
        return x + 1

    def method(self, x: int) -> int:
        return x + 1

    @classmethod
    def of_class(cls, x: int) -> int:
        return x + 1

    @staticmethod
    def static(x: int) -> int:
        return x + 1


class AsyncInstance:
    async def __call__(self, x: int) -> int:
        return x + 1


CALLABLES = {
    "function": plain,
    "lambda": lambda x: x + 1,
    "coroutine": coroutine,
    "instance": Instance(),
    "async instance": AsyncInstance(),
    "method": Instance().method,
    "class method": Instance.of_class,
    "static method": Instance.static,
    "partial": functools.partial(plain),
    "partial of a coroutine": functools.partial(coroutine),
    "function that returns a coroutine": lambda x: coroutine(x),  # noqa: PLW0108 - it is not the coroutine function
}


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


@pytest.mark.parametrize("tool", CALLABLES.values(), ids=CALLABLES)
@pytest.mark.parametrize("is_keyword", [True, False], ids=["keyword", "position"])
def test_every_kind_of_callable(tool: Callable[..., Any], *, is_keyword: bool, run: Run) -> None:
    with run.recorder() as recorder:
        wrapped = recorder.wrap_tools({"t": tool})["t"]
        assert asyncio.run(settled(wrapped(x=1) if is_keyword else wrapped(1))) == 2
    assert one(run.events("tool_call"))["args"] == {"x": 1}
    assert one(run.events("tool_result"))["result"] == 2
    for ask in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        assert ask(wrapped) == ask(tool if inspect.isroutine(tool) else getattr(tool, "func", type(tool).__call__))


def test_name_signature_and_documentation_stay(run: Run) -> None:
    with run.recorder() as recorder:
        wrapped = recorder.wrap_tools({"other": plain})["other"]
    assert wrapped.__name__ == "plain"
    assert inspect.signature(wrapped) == inspect.signature(plain)
    assert wrapped.__wrapped__ is plain


def test_results_and_exceptions_are_the_tools_own_objects(run: Run) -> None:
    result, error = object(), ValueError("x")

    def fail() -> None:
        raise error

    with run.recorder() as recorder:
        tools = recorder.wrap_tools({"t": lambda: result, "fail": fail})
        assert tools["t"]() is result
        with pytest.raises(ValueError, match="x") as caught:
            tools["fail"]()
    assert caught.value is error
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = run.events("tool_result")[1]
    assert (shown["status"], shown["error_class"], shown["extra"]) == (
        "error",
        "tool_error",
        {"error": "ValueError: x"},
    )


def test_a_call_that_does_not_fit_is_recorded_and_fails_as_ever(run: Run) -> None:
    with run.recorder() as recorder:
        wrapped = recorder.wrap_tools({"t": plain})["t"]
        for args, kwargs in (((), {"y": 1}), ((1, 2), {}), ((1,), {"x": 1})):
            with pytest.raises(TypeError, match=r"plain\(\)"):
                wrapped(*args, **kwargs)
    assert [event["args"] for event in run.events("tool_call")] == [{"y": 1}, {"args": [1, 2]}, {"args": [1], "x": 1}]
    assert {event["status"] for event in run.events("tool_result")} == {"error"}


def test_a_cancelled_coroutine_is_cancelled(run: Run) -> None:
    async def main() -> None:
        async with run.recorder() as recorder:
            wrapped = recorder.wrap_tools({"t": lambda: asyncio.sleep(30)})["t"]
            task = asyncio.ensure_future(wrapped())
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    shown = one(run.events("tool_result"))
    assert (shown["status"], shown["error_class"]) == ("cancelled", "cancelled")


def test_a_future_comes_out_as_the_same_object_and_is_recorded_when_done(run: Run) -> None:
    future: Future[int] = Future()
    with run.recorder() as recorder:
        assert recorder.wrap_tools({"t": lambda: future})["t"]() is future
        assert run.events("tool_result") == []
        future.set_result(5)
    assert one(run.events("tool_result"))["result"] == 5


def test_calls_at_the_same_time_start_before_any_of_them_ends(run: Run) -> None:
    async def main() -> None:
        async with run.recorder() as recorder:
            wrapped = recorder.wrap_tools({"t": coroutine})["t"]
            with recorder.turn():
                await asyncio.gather(*(wrapped(number) for number in range(3)))

    asyncio.run(main())
    assert run.outline()[:-1] == ["turn 1", *["call t 1 model"] * 3, *["result 1 ok"] * 3]


def test_threads_of_a_pool(run: Run) -> None:
    with run.recorder() as recorder:
        wrapped = recorder.wrap_tools({"t": plain})["t"]
        with recorder.turn(), ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(wrapped, range(50))) == list(range(1, 51))
    results = {event["call_id"]: event["result"] for event in run.events("tool_result")}
    assert {event["call_id"]: event["args"]["x"] + 1 for event in run.events("tool_call")} == results
    assert len(results) == 50


# --- generators ------------------------------------------------------------------------------------------------------


def stream(count: int) -> Generator[str, str | None, str]:
    """Yields numbers as texts; what is sent comes back, what is thrown in is handled once."""
    got = None
    for number in range(count):
        try:
            got = yield got or str(number)
        except KeyError:
            got = "handled"
    return "returned"


async def async_stream(count: int) -> AsyncGenerator[str, str | None]:
    got = None
    for number in range(count):
        await asyncio.sleep(0)
        try:
            got = yield got or str(number)
        except KeyError:
            got = "handled"


def test_a_generator_is_recorded_when_it_is_used_up(run: Run) -> None:
    with run.recorder() as recorder:
        wrapped = recorder.wrap_tools({"t": stream})["t"]
        assert inspect.isgeneratorfunction(wrapped)
        assert list(wrapped(3)) == ["0", "1", "2"]
    assert one(run.events("tool_result"))["result"] == {"items": "012", "returned": "returned"}


def test_what_is_sent_and_thrown_reaches_the_generator(run: Run) -> None:
    with run.recorder() as recorder:
        wrapped = recorder.wrap_tools({"t": stream})["t"](9)
        assert next(wrapped) == "0"
        assert wrapped.send("sent") == "sent"
        assert wrapped.throw(KeyError()) == "handled"
        with pytest.raises(ValueError, match="not handled"):
            wrapped.throw(ValueError("not handled"))
    shown = one(run.events("tool_result"))
    assert (shown["status"], shown["result"]) == ("error", "0senthandled")


def test_a_generator_that_is_given_up_was_cancelled(run: Run) -> None:
    closed = []

    def endless() -> Generator[int, None, None]:
        try:
            yield from range(100)
        finally:
            closed.append(True)

    with run.recorder() as recorder:
        for item in (wrapped := recorder.wrap_tools({"t": endless})["t"]()):
            if item == 2:
                break
        wrapped.close()
    assert closed == [True]
    shown = one(run.events("tool_result"))
    assert (shown["status"], shown["result"]) == ("cancelled", [0, 1, 2])


def test_a_function_that_returns_a_generator(run: Run) -> None:
    with run.recorder() as recorder:
        wrapped = recorder.wrap_tools({"t": lambda: (number for number in range(3))})["t"]
        assert list(wrapped()) == [0, 1, 2]
    assert one(run.events("tool_result"))["result"] == [0, 1, 2]


def test_a_secret_over_two_parts_of_a_stream_is_found(run: Run) -> None:
    def parts() -> Generator[str, None, None]:
        yield "key: sk-proj-abcdefgh"
        yield "ijklmnopqrstuvwx"

    with run.recorder() as recorder:
        list(recorder.wrap_tools({"t": parts})["t"]())
    assert one(run.events("tool_result"))["result"] == "key: <secret:1>"


@pytest.mark.parametrize("tool", [async_stream, lambda count: async_stream(count)], ids=["function", "returned"])  # noqa: PLW0108
def test_an_async_generator(tool: Callable[[int], AsyncGenerator[str, str | None]], run: Run) -> None:
    async def main() -> None:
        async with run.recorder() as recorder:
            wrapped = recorder.wrap_tools({"t": tool})["t"]
            assert [item async for item in wrapped(3)] == ["0", "1", "2"]
            second = wrapped(9)
            assert await anext(second) == "0"
            assert await second.asend("sent") == "sent"
            assert await second.athrow(KeyError()) == "handled"
            await second.aclose()
            third = wrapped(9)
            await anext(third)
            with pytest.raises(ValueError, match="not handled"):
                await third.athrow(ValueError("not handled"))

    asyncio.run(main())
    shown = [(event["status"], event["result"]) for event in run.events("tool_result")]
    assert shown == [("ok", "012"), ("cancelled", "0senthandled"), ("error", "0")]


def test_calls_within_a_stream_know_where_they_belong(run: Run) -> None:
    with run.recorder() as recorder:
        inner = recorder.tool(name="inner")(lambda: None)

        @recorder.tool()
        def outer() -> Generator[int, None, None]:
            yield 1
            inner()
            yield 2

        with recorder.turn():
            for _ in outer():
                recorder.call("between", {})
    parents = {event["tool_name"]: event.get("parent") for event in run.events("tool_call")}
    assert parents["inner"] == run.events("tool_call")[0]["call_id"]
    assert parents["between"] is None


# --- calls within calls ----------------------------------------------------------------------------------------------


def test_a_tool_that_calls_another_one_is_its_parent(run: Run) -> None:
    with run.recorder() as recorder:
        search = recorder.tool(name="search")(lambda: None)

        @recorder.tool()
        def report() -> None:
            search()
            with recorder.agent("writer"), recorder.turn():
                search()

        with recorder.turn():
            report()
            search()
    calls = run.events("tool_call")
    assert [(event["tool_name"], event.get("origin", "model")) for event in calls] == [
        ("report", "model"), ("search", "harness"), ("search", "model"), ("search", "model"),
    ]  # fmt: skip
    outer = calls[0]["call_id"]
    assert [event.get("parent") for event in calls] == [None, outer, outer, None]


def test_the_providers_call_id_is_taken_once(run: Run) -> None:
    with run.recorder() as recorder:
        tools = recorder.wrap_tools({"a": lambda: 1, "b": lambda: 2})
        with recorder.call_id("toolu_1"):
            tools["a"]()
            tools["a"]()
            tools["b"]()
        tools["a"]()
    ids = [event["call_id"] for event in run.events("tool_call")]
    assert ids[0] == "toolu_1"
    assert len(set(ids)) == 4
    assert [event["call_id"] for event in run.events("tool_result")] == ids


# --- results that are failures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "status", "http_status"),
    [
        ({"isError": True, "content": []}, "error", None),
        (types.SimpleNamespace(is_error=True), "error", None),
        (httpx.Response(503, headers={"retry-after": "1"}), "error", 503),
        (httpx.Response(200), "ok", None),
        ("Error: it broke", "ok", None),
    ],
)
def test_a_returned_failure(result: Any, status: str, http_status: int | None, run: Run) -> None:
    with run.recorder() as recorder:
        assert recorder.wrap_tools({"t": lambda: result})["t"]() is result
    shown = one(run.events("tool_result"))
    assert (shown["status"], shown.get("http_status")) == (status, http_status)


# --- what is known of a tool -----------------------------------------------------------------------------------------


def test_the_decorator_fills_its_templates_from_the_arguments(run: Run) -> None:
    with run.recorder() as recorder:

        @recorder.tool(name="pay", access="write", resource="order:{order.id}:{lines[0]}", idempotency_key="{key}")
        def charge(order: Any, lines: list[str], key: str | None = "default") -> None:
            pass

        charge({"id": "o1"}, ["a"])
        charge(order=types.SimpleNamespace(id="o2"), lines=["b"], key="k")
        charge({}, [], None)
    shown = [
        (event["tool_name"], event["access"], event.get("resource"), event.get("idempotency_key"))
        for event in run.events("tool_call")
    ]
    assert shown == [
        ("pay", "write", "order:o1:a", "default"), ("pay", "write", "order:o2:b", "k"), ("pay", "write", None, None),
    ]  # fmt: skip
    assert "key" not in run.events("tool_call")[0]["args"]


@dataclasses.dataclass(frozen=True)
class Registered:
    func: Callable[..., Any]
    access: str = "read"
    resource: str = "doc:{x}"
    schema: dict[str, Any] = dataclasses.field(default_factory=dict)


class Slotted:
    __slots__ = ("annotations", "handler")

    def __init__(self) -> None:
        self.handler = plain
        self.annotations = types.SimpleNamespace(readOnlyHint=False, destructiveHint=True)


def test_a_registry_keeps_its_shape(run: Run) -> None:
    registry = {
        "plain": plain,
        "dict": {"callable": plain, "access": "write", "idempotency_key": "{x}", "schema": {"type": "object"}},
        "object": Registered(plain),
        "slotted": Slotted(),
        "hinted": {"fn": plain, "annotations": {"readOnlyHint": True}},
    }
    with run.recorder() as recorder:
        tools = recorder.wrap_tools(registry)
        assert tools["dict"]["schema"] is registry["dict"]["schema"]  # type: ignore[index]
        assert isinstance(tools["object"], Registered)
        for tool in (
            tools["plain"],
            tools["dict"]["callable"],
            tools["object"].func,
            tools["slotted"].handler,
            tools["hinted"]["fn"],
        ):
            assert tool(1) == 2
    assert registry["dict"]["callable"] is plain  # type: ignore[index]
    assert registry["object"].func is plain  # type: ignore[attr-defined]
    shown = {
        event["tool_name"]: (event.get("access"), event.get("resource"), event.get("idempotency_key"))
        for event in run.events("tool_call")
    }
    assert shown == {
        "plain": (None, None, None), "dict": ("write", None, "1"), "object": ("read", "doc:1", None),
        "slotted": ("write", None, None), "hinted": ("read", None, None),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"resource": "order:{oder_id}"}, "has no argument 'oder_id'"),
        ({"resource": "order:{order_id"}, "not a template"),
        ({"resource": "{}"}, "not a template"),
        ({"resource": "{0}"}, "not a template"),
        ({"idempotency_key": "{order_id!r}"}, "not a template"),
        ({"idempotency_key": "{order_id:>9}"}, "not a template"),
        ({"access": "delete"}, "access of tool 'pay' is 'delete'"),
    ],
)
def test_what_is_wrong_about_a_tool_is_said_before_the_run(options: dict[str, Any], what: str, run: Run) -> None:
    recorder = run.recorder()
    with pytest.raises(ConfigError, match=what):

        @recorder.tool(name="pay", **options)
        def pay(order_id: str) -> None:
            pass


NO_TOOLS = {
    "a dict without a callable": {"t": {"schema": {}}},
    "an object without one": {"t": object()},
    "a dict in a list": [{"name": "t", "function": {"parameters": {}}}],
    "a tool of a library that holds none": [types.SimpleNamespace(name="t", on_invoke_tool=plain)],
}


@pytest.mark.parametrize("is_recording", [True, False], ids=["recording", "not recording"])
@pytest.mark.parametrize("tools", NO_TOOLS.values(), ids=NO_TOOLS)
def test_an_entry_that_is_no_tool_is_said_before_the_run(tools: Any, is_recording: bool, run: Run) -> None:
    recorder = run.recorder() if is_recording else Recorder()
    with pytest.raises(ConfigError, match="tool 't' is no callable and holds none") as caught:
        recorder.wrap_tools(tools)
    assert caught.value.next_step == (
        "wrap the plain function, below other decorators, or record it by rec.call and rec.result"
    )
    entry = tools["t"] if isinstance(tools, dict) else tools[0]
    with pytest.raises(ConfigError, match="is no callable and holds none"):
        recorder.tool(name="t")(entry)


@pytest.mark.parametrize(
    ("tools", "what"),
    [
        (StructuredTool(plain), "wrap_tools was given a StructuredTool"),
        ("plain", "wrap_tools was given a str"),
        ([functools.partial(plain)], "a tool of the list has no name: partial"),
        ([{"type": "web_search"}], "a tool of the list has no name: dict"),
    ],
)
def test_a_registry_that_is_none_is_said_before_the_run(tools: Any, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        Recorder().wrap_tools(tools)


# --- tools of LangChain ----------------------------------------------------------------------------------------------


def test_a_decorator_above_the_frameworks_own(run: Run) -> None:
    with run.recorder() as recorder:

        @recorder.tool(access="read", resource="doc:{x}")
        @tool
        def look(x: int) -> int:
            return x + 1

        @recorder.tool()
        @tool
        async def wait(x: int) -> int:
            return x + 1

        assert isinstance(look, StructuredTool)
        assert (look.parameters, look.invoke({"x": 1})) == (["x"], 2)
        assert asyncio.run(wait.ainvoke({"x": 1})) == 2
    shown = [(event["tool_name"], event.get("access"), event.get("resource")) for event in run.events("tool_call")]
    assert shown == [("look", "read", "doc:1"), ("wait", None, None)]
    assert [event["result"] for event in run.events("tool_result")] == [2, 2]


class Search(BaseTool):
    """A tool as a class, which has no function to replace."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _run(self, x: int) -> int:
        return x + 1


class Fetch(Search):
    async def _arun(self, x: int) -> int:
        return x + 1


def test_a_list_of_tools_is_given_back_as_a_list(run: Run) -> None:
    tools = (StructuredTool(plain), Search("search"), Fetch("fetch"), coroutine)
    with run.recorder() as recorder:
        first, search, fetch, last = recorder.wrap_tools(tools)
        assert first.invoke({"x": 1}) == search.invoke({"x": 1}) == 2
        assert (
            asyncio.run(search.ainvoke({"x": 1})) == asyncio.run(fetch.ainvoke({"x": 1})) == asyncio.run(last(1)) == 2
        )
    names = [event["tool_name"] for event in run.events("tool_call")]
    assert names == ["plain", "search", "search", "fetch", "coroutine"], "each call once"
    assert [event["result"] for event in run.events("tool_result")] == [2] * 5
    assert tools[0].func is plain, "the tools themselves are as they were"


def test_without_a_recording_the_very_objects_come_back() -> None:
    recorder = Recorder()
    tools = [StructuredTool(plain), Search("search"), {"name": "d", "callable": plain}, plain]
    assert all(one is other for one, other in zip(recorder.wrap_tools(tools), tools, strict=True))
    assert recorder.tool(access="read")(tools[0]) is tools[0]


def test_a_template_does_not_reach_into_private_attributes(run: Run) -> None:
    with run.recorder() as recorder:
        recorder.tool(resource="{x.__class__}")(plain)(1)
    assert "resource" not in one(run.events("tool_call"))


def test_tools_in_a_class(run: Run) -> None:
    recorder = run.recorder()

    class Shop:
        @recorder.tool(resource="{order_id}")
        def order(self, order_id: str) -> str:
            return order_id

        @recorder.tool()
        @staticmethod
        def static(x: int) -> int:
            return x

        @classmethod
        @recorder.tool()
        def of_class(cls, x: int) -> type[Self]:
            return cls

    with recorder:
        assert Shop().order("o1") == "o1"
        assert Shop().static(3) == 3
        assert Shop.of_class(4) is Shop
    assert [(event["tool_name"], event["args"]) for event in run.events("tool_call")] == [
        ("order", {"order_id": "o1"}), ("static", {"x": 3}), ("of_class", {"x": 4}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "args", "kwargs", "recorded"),
    [
        (lambda a, b=2: None, (1,), {}, {"a": 1}),
        (lambda *items, **more: None, (1, 2), {"c": 3}, {"items": [1, 2], "c": 3}),
        (lambda a, /, *, b: None, (1,), {"b": 2}, {"a": 1, "b": 2}),
        (len, ([1],), {}, {"obj": [1]}),
        (max, (1, 2), {}, {"args": [1, 2]}),
        (dict, (), {"a": 1}, {"a": 1}),
    ],
)
def test_arguments_are_those_that_were_passed(
    tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any], recorded: dict[str, Any], run: Run
) -> None:
    with run.recorder() as recorder:
        recorder.wrap_tools({"t": tool})["t"](*args, **kwargs)
    assert one(run.events("tool_call"))["args"] == recorded


def test_two_recorders_do_not_mix(run: Run, tmp_path: Any) -> None:
    other = Run(tmp_path / "other.jsonl")
    with run.recorder() as first, Recorder(other.path) as second, first.turn(), second.turn():
        first.call("a", {})
        second.call("b", {})
    assert [event["tool_name"] for event in run.events("tool_call")] == ["a"]
    assert [event["tool_name"] for event in other.events("tool_call")] == ["b"]
