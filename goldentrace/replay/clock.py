"""A virtual clock: waits take no time and still last exactly as long as they were asked for.

Time stands still while code runs and moves only when everything waits, to the moment of the earliest wait. A scenario
with minutes of backoff runs in milliseconds, its `delay_ms` and gaps are exact, and sleepers wake in the order of
their moments, those of one moment in the order in which they went to sleep. A harness passes the clock in, or
installs it over the `time` module and asyncio. This module must not know what waits for what.

Long because the clock, its event loop and its installation are one promise: what one of them forgot would run on real
time."""

import asyncio
import contextlib
import heapq
import itertools
import selectors
import sys
import threading
import time as real_time
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context
from types import ModuleType
from typing import Any, Final, TypeVar

from goldentrace.errors import ConfigError

Result = TypeVar("Result")

IO_GRACE_S: Final = 0.05
"""How long real input may take to arrive before a wait is over, in real seconds, where a socket is open. Answers of
servers on this machine come within a few milliseconds; `hold` is for what takes longer."""
HOLD_LIMIT_S: Final = 60
"""Real seconds after which a held clock that everything waits for is an error, no hang."""
_NS: Final = 1_000_000_000
_FUNCTIONS: Final = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")


class VirtualClock:
    """Both clocks of a process, standing still until somebody waits.

    start_time_ns: of the wall clock, since the epoch, default now; start_monotonic_ns: default 0; io_grace_s: see
    IO_GRACE_S. `time_ns` and `monotonic_ns` are what a recorder or a journal takes as its clock. Threads share the
    clock: their sleeps follow one another, because nothing tells a thread that works from one that waits."""

    def __init__(
        self, *, start_time_ns: int | None = None, start_monotonic_ns: int = 0, io_grace_s: float = IO_GRACE_S
    ) -> None:
        self._start_time_ns = real_time.time_ns() if start_time_ns is None else start_time_ns
        self._start_ns = start_monotonic_ns
        self._now_ns = start_monotonic_ns
        self._lock = threading.Lock()
        self._holds = 0
        self.io_grace_s = io_grace_s

    def time(self) -> float:
        """Return seconds since the epoch."""
        return self.time_ns() / _NS

    def time_ns(self) -> int:
        return self._start_time_ns + self._now_ns - self._start_ns

    def monotonic(self) -> float:
        """Return seconds of the clock that never goes back."""
        return self._now_ns / _NS

    def monotonic_ns(self) -> int:
        return self._now_ns

    def sleep(self, seconds: float) -> None:
        """Move the clock on; returns at once. Raises: ValueError for a negative or undefined wait, as time.sleep
        does."""
        if not seconds >= 0:
            raise ValueError("sleep length must be non-negative")
        with self._lock:
            self._now_ns += round(seconds * _NS)

    async def async_sleep(self, seconds: float) -> None:
        """Wait as asyncio.sleep does, on this clock. Raises: ConfigError in an event loop that another clock drives."""
        loop = asyncio.get_running_loop()
        if not self._is_driving(loop):
            self.attach(loop)
        await asyncio.sleep(seconds)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the clock where it is while real work is under way, such as a request to a slow server.

        Waits do not end meanwhile, timeouts of asyncio included.
        """
        with self._lock:
            self._holds += 1
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1

    @property
    def is_held(self) -> bool:
        return self._holds > 0

    def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end on an event loop of this clock, as asyncio.run does. Timeouts are virtual too."""
        with asyncio.Runner(loop_factory=self.new_event_loop) as runner:
            return runner.run(main)

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return an event loop that this clock drives; `loop_factory` of asyncio.Runner takes it."""
        return VirtualEventLoop(self)

    def attach(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """Drive a loop that is there already; return what gives it back.

        Raises: ConfigError where that loop has no selector of its own to wait with (uvloop, Windows' proactor).
        """
        selector = getattr(loop, "_selector", None)
        if not isinstance(selector, selectors.BaseSelector):
            raise ConfigError(
                f"an event loop of type {type(loop).__name__} cannot be driven by a virtual clock",
                next_step="run it with VirtualClock.run, or give asyncio.Runner the clock's new_event_loop",
            )
        timers = _Timers()
        loop.time = self.monotonic  # type: ignore[method-assign]
        loop.call_at = lambda when, callback, *args, context=None: timers.add(  # type: ignore[method-assign]
            loop, when, callback, args, context
        )
        loop._selector = _VirtualSelector(self, selector)  # type: ignore[attr-defined] # noqa: SLF001
        loop._virtual_clock = self  # type: ignore[attr-defined] # noqa: SLF001

        def detach() -> None:
            for name in ("time", "call_at", "_virtual_clock"):
                loop.__dict__.pop(name, None)
            loop._selector = selector  # type: ignore[attr-defined] # noqa: SLF001

        return detach

    def _is_driving(self, loop: asyncio.AbstractEventLoop) -> bool:
        clock = getattr(loop, "_virtual_clock", None)
        if clock is not None and clock is not self:
            raise ConfigError("this event loop is driven by another virtual clock", next_step="use one clock for a run")
        return clock is self

    @contextlib.contextmanager
    def install(self) -> Iterator["VirtualClock"]:
        """Put the clock in place of the real one for the code of this process: `time`, asyncio, and what took from
        them.

        Event loops made meanwhile are the clock's, and so is the running one; a loop that runs already in another
        thread stays on real time, as does what the standard library keeps to itself (locks, socket and subprocess
        timeouts). Raises: ConfigError where a clock is installed already, or the running loop cannot be driven."""
        if isinstance(getattr(real_time.sleep, "__self__", None), VirtualClock):
            raise ConfigError("a virtual clock is installed already", next_step="use one clock for a run")
        pairs = self._pairs()
        detach: Callable[[], None] | None = None
        with contextlib.suppress(RuntimeError):  # no loop runs here
            detach = self.attach(asyncio.get_running_loop())
        # Loops on real time keep it before the functions change and until they are back: one that reads the other
        # time in between would wait for years.
        real_monotonic, loop_time = pairs[_FUNCTIONS.index("monotonic")][0], asyncio.BaseEventLoop.time
        asyncio.BaseEventLoop.time = lambda _loop: real_monotonic()  # type: ignore[method-assign, assignment]
        _swap({id(real): virtual for real, virtual in pairs})
        try:
            yield self
        finally:
            _swap({id(virtual): real for real, virtual in pairs})
            asyncio.BaseEventLoop.time = loop_time  # type: ignore[method-assign]
            if detach is not None:
                detach()

    def _pairs(self) -> list[tuple[Any, Any]]:
        """(real function, this clock's), in the order of _FUNCTIONS, then that which makes event loops."""
        own = [
            self.time, self.time_ns, self.monotonic, self.monotonic_ns, self.monotonic, self.monotonic_ns, self.sleep,
        ]  # fmt: skip
        pairs: list[tuple[Any, Any]] = [
            (getattr(real_time, name), new) for name, new in zip(_FUNCTIONS, own, strict=True)
        ]
        return [*pairs, (asyncio.new_event_loop, self.new_event_loop)]


class VirtualEventLoop(asyncio.SelectorEventLoop):
    """A loop whose time is a virtual clock's."""

    def __init__(self, clock: VirtualClock) -> None:
        self._virtual_clock = clock
        self._timers = _Timers()
        super().__init__(_VirtualSelector(clock, selectors.DefaultSelector()))

    def time(self) -> float:
        return self._virtual_clock.monotonic()

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self._timers.add(self, when, callback, args, context)


class _Timers:
    """Adds timers to a loop's heap so that those of one moment keep their order, which a heap alone does not
    promise."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def add(
        self,
        loop: asyncio.AbstractEventLoop,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        timer = _Timer(when, callback, args, loop, context)
        timer.number = next(self._numbers)
        heapq.heappush(loop._scheduled, timer)  # type: ignore[attr-defined] # noqa: SLF001
        timer._scheduled = True  # type: ignore[attr-defined] # noqa: SLF001 (as BaseEventLoop.call_at does)
        return timer


class _Timer(asyncio.TimerHandle):
    number = 0

    def __lt__(self, other: asyncio.TimerHandle) -> bool:
        if isinstance(other, _Timer) and self.when() == other.when():
            return self.number < other.number
        return self.when() < other.when()


class _VirtualSelector(selectors.BaseSelector):
    """Waits for input as the real selector does; where the loop would wait for a timer, moves the clock to it instead.

    The loop asks with a timeout only when nothing is ready to run. Input that is due comes first: where a socket is
    open it gets the grace."""

    def __init__(self, clock: VirtualClock, real: selectors.BaseSelector) -> None:
        self._clock = clock
        self._real = real

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return self._real.select(timeout)
        # The first file is the loop's own, by which threads wake it; a thread at work counts as input under way.
        is_alone = len(self._real.get_map()) <= 1 and threading.active_count() == 1
        ready = self._real.select(0 if is_alone else self._clock.io_grace_s)
        for _ in range(HOLD_LIMIT_S * 10):
            if ready or not self._clock.is_held:
                break
            ready = self._real.select(0.1)
        else:
            raise ConfigError(
                f"the virtual clock was held for {HOLD_LIMIT_S} s while everything waited for it",
                next_step="do not wait for the clock inside `hold`",
            )
        if not ready:
            self._clock.sleep(timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Any:
        return self._real.get_map()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.get_key(fileobj)

    def close(self) -> None:
        self._real.close()


def _swap(replaced: dict[int, Any]) -> None:
    """Replace functions, by identity, in `time`, in asyncio and in every module beyond the standard library, the rest
    of which took them for itself and waits for real things. Modules imported meanwhile are found the same way
    back."""
    modules: list[tuple[str, Any]] = list(sys.modules.items())  # some packages put other objects there
    for name, module in modules:
        root = name.partition(".")[0]
        is_theirs = root in sys.stdlib_module_names and root not in ("time", "asyncio")
        if not isinstance(module, ModuleType) or is_theirs or name == __name__:
            continue
        for attribute, value in list(vars(module).items()):
            if id(value) in replaced:
                setattr(module, attribute, replaced[id(value)])
