"""Tools wrapped so that their calls are recorded: functions, coroutines, generators of both kinds, registries of them.

A wrapped tool returns what the tool returns and raises what it raises, the same objects. This module must not decide
what is written.
"""

import copy
import functools
import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Mapping
from types import TracebackType
from typing import Any, Final

from goldentrace.errors import ConfigError
from goldentrace.record.calls import Call
from goldentrace.record.failures import chain
from goldentrace.record.session import Session
from goldentrace.record.tools import Binder, Tool, describe_tool, name_of

_Begin = Callable[[tuple[Any, ...], dict[str, Any]], Call]


CALLABLE_NAMES: Final = ("callable", "func", "function", "fn", "handler", "coroutine")
"""Where objects and dicts of a registry keep the function: of hand-written ones and of LangChain (func, coroutine)."""
METHOD_NAMES: Final = ("_run", "_arun")
"""Where a subclass of LangChain's BaseTool has it instead."""


def wrap_registry(session: Session, tools: Any, ignore: Collection[str] = ()) -> dict[str, Any] | list[Any]:
    """Return the registry with every tool wrapped (see `wrap_tool`): of a mapping a dict, of a list or tuple a list.

    ignore: parameters that are no arguments, of whichever tool has them. Raises: ConfigError for anything else, for
    metadata that is wrong, for an entry that holds no callable, for one in a list that has no name.
    """
    if isinstance(tools, Mapping):
        return {name: wrap_tool(session, entry, describe_tool(name, entry, ignore)) for name, entry in tools.items()}
    if not isinstance(tools, list | tuple):
        raise ConfigError(
            f"wrap_tools was given a {type(tools).__name__}",
            next_step="give it a dict of tools by name or a list of them; one tool: rec.tool()(tool)",
        )
    return [wrap_tool(session, entry, describe_tool(_name_in_list(entry), entry, ignore)) for entry in tools]


def _name_in_list(entry: Any) -> str:
    name = name_of(entry)
    if name is None:
        raise ConfigError(
            f"a tool of the list has no name: {type(entry).__name__}",
            next_step="give the tools as a dict by name, or leave out of the list what the agent does not run itself",
        )
    return name


def wrap_tool(session: Session, entry: Any, tool: Tool) -> Any:
    """Return a tool that records its calls.

    A callable is wrapped. Of a dict or object that holds one (`CALLABLE_NAMES`, `METHOD_NAMES`) a shallow copy is
    returned with the callable replaced, so that the agent finds what it expects. A recorder that has nothing to write
    and no limit returns the tool itself. Raises: ConfigError for what is neither, or a template that names no argument.
    """
    held = _held(entry)
    if not held:
        if not callable(entry):
            raise ConfigError(
                f"tool {tool.name!r} is no callable and holds none ({', '.join(CALLABLE_NAMES)})",
                next_step="wrap the plain function, below other decorators, or record it by rec.call and rec.result",
            )
        return wrap_callable(session, entry, tool)
    wrapped = {key: wrap_callable(session, function, tool) for key, function in held.items()}
    if not session.is_active:
        return entry
    if isinstance(entry, Mapping):
        return {**entry, **wrapped}
    copied = copy.copy(entry)
    for key, function in wrapped.items():
        object.__setattr__(copied, key, function)
    return copied


def _held(entry: Any) -> dict[str, Callable[..., Any]]:
    """The callables that a dict or object holds for the agent to call, by key or attribute."""
    if isinstance(entry, Mapping):
        return {key: entry[key] for key in CALLABLE_NAMES if callable(entry.get(key))}
    if inspect.isroutine(entry) or isinstance(entry, functools.partial | type):
        return {}
    held = {key: value for key in CALLABLE_NAMES if callable(value := getattr(entry, key, None))}
    if held or callable(entry):
        return held
    return {name: getattr(entry, name) for name in METHOD_NAMES if _is_own(getattr(type(entry), name, None))}


def _is_own(method: Any) -> bool:
    """Is this the tool's method? What LangChain's base class has calls the other one."""
    return inspect.isfunction(method) and not method.__module__.startswith("langchain_core.")


def wrap_callable(session: Session, function: Callable[..., Any], tool: Tool) -> Callable[..., Any]:
    """Return a function of the same kind (plain, coroutine, generator, async generator) that records each call.

    A recorder that has nothing to write and no limit returns the function itself.
    Raises: ConfigError for a template that names no argument.
    """
    if isinstance(function, staticmethod):
        return staticmethod(wrap_callable(session, function.__func__, tool))
    binder = Binder(function, tool)
    if not session.is_active:
        return function

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return session.begin_call(tool, binder, args, kwargs)

    is_plain = inspect.isroutine(function) or isinstance(function, functools.partial | type)
    target: Any = function if is_plain else type(function).__call__  # an object that can be called
    if inspect.iscoroutinefunction(target):
        wrapper = _coroutine(session, function, begin)
    elif inspect.isasyncgenfunction(target):
        wrapper = _async_generator(session, function, begin)
    elif inspect.isgeneratorfunction(target):
        wrapper = _generator(session, function, begin)
    else:
        wrapper = _function(session, function, begin)
    return functools.update_wrapper(wrapper, function)


def _function(session: Session, function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
    def recorded(*args: Any, **kwargs: Any) -> Any:
        call = begin(args, kwargs)
        before = session.enter_call(call)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            session.fail_call(call, error)
            raise
        finally:
            session.leave_call(call, before)
        return _follow(session, call, result)

    return recorded


def _follow(session: Session, call: Call, result: Any) -> Any:
    """Record a plain function's result: now, or when what it returned is done."""
    if inspect.isgenerator(result):
        return _generator(session, lambda: result, lambda _args, _kwargs: call)()
    if inspect.isasyncgen(result):
        return _async_generator(session, lambda: result, lambda _args, _kwargs: call)()
    if callable(getattr(result, "add_done_callback", None)):  # a future or task: the same object must come out
        result.add_done_callback(functools.partial(_finish_future, session, call))
        return result
    if inspect.isawaitable(result):
        return _await(session, call, result)
    session.finish_call(call, result)
    return result


def _finish_future(session: Session, call: Call, future: Any) -> None:
    try:
        value = future.result()
    except BaseException as error:  # noqa: BLE001 - recorded only; whoever asks the future gets it
        session.fail_call(call, error)
    else:
        session.finish_call(call, value)


def _coroutine(session: Session, function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        call = begin(args, kwargs)
        return await _await(session, call, function(*args, **kwargs))

    return recorded


async def _await(session: Session, call: Call, awaitable: Awaitable[Any]) -> Any:
    before = session.enter_call(call)
    try:
        bound = session.remaining_ms(call)
        result = await (awaitable if bound is None else _within(session, call, awaitable, *bound))
    except BaseException as error:
        session.fail_call(call, error)
        raise
    finally:
        session.leave_call(call, before)
    session.finish_call(call, result)
    return result


async def _within(session: Session, call: Call, awaitable: Awaitable[Any], remaining_ms: float, name: str) -> Any:
    """Await for as long as a limit allows. Raises: LimitReached, once the attempt is cancelled and recorded."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:  # noqa: SLF001 - documented for this use
        return await awaitable  # another library's loop, whose tasks cannot be cancelled from here
    timeout = asyncio.timeout(max(0.0, remaining_ms) / 1000)
    try:
        async with timeout:
            return await awaitable
    except TimeoutError as error:
        if not timeout.expired():
            raise
        session.fail_call(call, error)
        raise session.out_of_time(call, name) from None


def _generator(session: Session, function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
    def recorded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        """Pass everything on in both directions (PEP 380), and record what came when it is over."""
        call = begin(args, kwargs)
        stream: Generator[Any, Any, Any] = function(*args, **kwargs)
        items: list[Any] = []
        resume: Callable[[], Any] = functools.partial(next, stream)
        while True:
            before = session.enter_call(call)
            try:
                item = resume()
            except StopIteration as stop:
                session.finish_call(call, _whole(items, stop.value))
                return stop.value
            except BaseException as error:
                session.fail_call(call, error, _whole(items, None))
                raise
            finally:
                session.leave_call(call, before)
            items.append(item)
            try:
                sent = yield item
            except GeneratorExit as error:
                session.fail_call(call, error, _whole(items, None))
                stream.close()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in by the consumer; it is the tool's to handle
                resume = functools.partial(stream.throw, error)
            else:
                resume = functools.partial(stream.send, sent)

    return recorded


def _async_generator(session: Session, function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
    async def recorded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        """As a generator, by PEP 525."""
        call = begin(args, kwargs)
        stream: AsyncGenerator[Any, Any] = function(*args, **kwargs)
        items: list[Any] = []
        resume: Callable[[], Awaitable[Any]] = functools.partial(anext, stream)
        while True:
            before = session.enter_call(call)
            try:
                item = await resume()
            except StopAsyncIteration:
                session.finish_call(call, _whole(items, None))
                return
            except BaseException as error:
                session.fail_call(call, error, _whole(items, None))
                raise
            finally:
                session.leave_call(call, before)
            items.append(item)
            try:
                sent = yield item
            except GeneratorExit as error:
                session.fail_call(call, error, _whole(items, None))
                await stream.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - as for a generator
                resume = functools.partial(stream.athrow, error)
            else:
                resume = functools.partial(stream.asend, sent)

    return recorded


def _whole(items: list[Any], returned: Any) -> Any:
    """A stream as one value: texts joined (a secret may lie across two of them), else the list; what it returned, if
    so."""
    if returned is not None:
        return {"items": _whole(items, None), "returned": returned}
    return "".join(items) if items and all(isinstance(item, str) for item in items) else items


def call_of(error: BaseException | None) -> Call | None:
    """Return the recorded call that an exception came out of, the outermost one; None if no wrapped tool raised it.

    The exception's traceback knows: it passed through a frame of this module, which holds the call.
    """
    for link in () if error is None else chain(error):
        traceback: TracebackType | None = link.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_code.co_filename == __file__ and isinstance(held := frame.f_locals.get("call"), Call):
                return held
            traceback = traceback.tb_next
    return None
