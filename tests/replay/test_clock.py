"""The virtual clock: waits take no time and last exactly as long as they were asked for."""

import asyncio
import sys
import threading
import time
from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.errors import ConfigError
from goldentrace.replay import clock as clock_module
from goldentrace.replay.clock import VirtualClock

START_NS = 1_767_225_600_000_000_000


def real_seconds() -> float:
    """Return the real clock, which no installed one stands in for."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def sleepers(clock: VirtualClock, waits: list[float]) -> list[tuple[int, int]]:
    """Return (who, when in ns) in the order in which concurrent sleepers wake."""
    woken: list[tuple[int, int]] = []

    async def sleep(number: int, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append((number, clock.monotonic_ns()))

    async def run() -> None:
        await asyncio.gather(*(sleep(number, seconds) for number, seconds in enumerate(waits)))

    clock.run(run())
    return woken


def test_time_stands_still_until_somebody_waits() -> None:
    clock = VirtualClock(start_time_ns=START_NS)
    assert (clock.time_ns(), clock.monotonic_ns()) == (START_NS, 0)
    clock.sleep(0.25)
    assert (clock.time_ns(), clock.monotonic_ns()) == (START_NS + 250_000_000, 250_000_000)
    assert (clock.time(), clock.monotonic()) == (1_767_225_600.25, 0.25)


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_an_impossible_wait_is_refused_as_time_refuses_it(seconds: float) -> None:
    with pytest.raises(ValueError, match="sleep length"):
        VirtualClock().sleep(seconds)


@given(st.lists(st.integers(0, 40).map(lambda tenths: tenths / 10), max_size=12))
@settings(max_examples=60)
def test_sleepers_wake_by_moment_then_by_who_came_first(waits: list[float]) -> None:
    expected = sorted(range(len(waits)), key=lambda number: (waits[number], number))
    woken = sleepers(VirtualClock(), waits)
    assert [number for number, _ in woken] == expected
    assert [moment for _, moment in woken] == [round(waits[number] * 1e9) for number in expected]


def test_hours_pass_in_no_time() -> None:
    began = real_seconds()
    assert sleepers(VirtualClock(), [3600.0, 7200.0])[-1] == (1, 7_200_000_000_000)
    assert real_seconds() - began < 60


def test_timeouts_are_virtual_too() -> None:
    clock = VirtualClock()

    async def run() -> str:
        try:
            async with asyncio.timeout(5):
                await asyncio.sleep(10)
        except TimeoutError:
            return f"timed out at {clock.monotonic()}"
        return "slept"

    assert clock.run(run()) == "timed out at 5.0"


def test_an_answer_from_a_socket_comes_before_a_wait_ends() -> None:
    clock = VirtualClock(io_grace_s=5)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async def run() -> tuple[bytes, int]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            async with asyncio.timeout(1):
                line = await reader.readline()
            at_ns = clock.monotonic_ns()
            writer.close()
            return line, at_ns

    assert clock.run(run()) == (b"hello\n", 0)


def test_a_held_clock_waits_for_work() -> None:
    clock = VirtualClock(io_grace_s=0)

    async def run() -> int:
        with clock.hold():
            waiting = asyncio.create_task(asyncio.sleep(1))
            await asyncio.to_thread(time.sleep, 0.05)
            at_ns = clock.monotonic_ns()
        await waiting
        return at_ns

    assert clock.run(run()) == 0
    assert clock.monotonic_ns() == 1_000_000_000


def test_waiting_for_a_clock_that_one_holds_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "HOLD_LIMIT_S", 1)
    clock = VirtualClock()

    async def run() -> None:
        with clock.hold():
            await asyncio.sleep(1)

    with pytest.raises(ConfigError, match="held for 1 s"):
        clock.run(run())


def test_installed_it_is_the_time_of_everything() -> None:
    clock = VirtualClock(start_time_ns=START_NS)
    with clock.install():
        assert time.time_ns() == START_NS
        time.sleep(60)
        asyncio.run(asyncio.sleep(0.5))
        assert (time.monotonic(), time.perf_counter_ns(), time.time_ns() - START_NS) == (
            60.5,
            60_500_000_000,
            60_500_000_000,
        )
    assert time.time_ns() > START_NS
    began = real_seconds()
    time.sleep(0.01)
    assert real_seconds() - began >= 0.009


def test_what_took_a_function_for_itself_gets_the_clock_and_the_function_back() -> None:
    module = ModuleType("took_time_for_itself")
    module.sleep, module.now = time.sleep, time.monotonic  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    late = ModuleType("imported_meanwhile")
    real = (time.sleep, time.monotonic)
    try:
        with VirtualClock().install():
            module.sleep(5)
            assert module.now() == 5.0
            late.sleep = time.sleep  # type: ignore[attr-defined]
            sys.modules[late.__name__] = late
        assert (module.sleep, module.now, late.sleep) == (*real, real[0])
    finally:
        for name in (module.__name__, late.__name__):
            sys.modules.pop(name, None)


def test_installed_in_a_running_loop_it_drives_that_loop() -> None:
    async def run() -> tuple[float, float]:
        clock = VirtualClock()
        with clock.install():
            await asyncio.sleep(100)
            virtual = time.monotonic()
        began = real_seconds()
        await asyncio.sleep(0.02)
        return virtual, real_seconds() - began

    virtual, real = asyncio.run(run())
    assert virtual == 100.0
    assert real >= 0.019, "and gives it back"


def test_a_loop_in_another_thread_stays_on_real_time() -> None:
    begun, seen = threading.Event(), []

    async def run() -> None:
        begun.set()
        began = real_seconds()
        await asyncio.sleep(0.1)
        seen.append(real_seconds() - began)

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    begun.wait(10)
    with VirtualClock().install():
        thread.join(10)
    loop.close()
    assert seen
    assert seen[0] >= 0.09


def test_a_loop_in_another_thread_keeps_real_time_while_clocks_come_and_go() -> None:
    loop, is_over = asyncio.new_event_loop(), threading.Event()
    times: list[float] = []

    async def run() -> None:
        while not is_over.is_set():
            times.append(loop.time())
            await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    for _ in range(20):
        with VirtualClock().install():
            pass
    is_over.set()
    thread.join(10)
    loop.close()
    assert times == sorted(times)


def test_injected_sleep_drives_the_loop_that_calls_it() -> None:
    async def run() -> int:
        clock = VirtualClock()
        await asyncio.gather(clock.async_sleep(30), clock.async_sleep(10))
        return clock.monotonic_ns()

    assert asyncio.run(run()) == 30_000_000_000


def test_two_clocks_do_not_mix() -> None:
    async def run() -> None:
        await VirtualClock().async_sleep(1)

    with pytest.raises(ConfigError, match="another virtual clock"):
        VirtualClock().run(run())
    with VirtualClock().install(), pytest.raises(ConfigError, match="installed already"), VirtualClock().install():
        pass


def test_a_loop_without_a_selector_is_refused_with_a_way_out() -> None:
    class Foreign(asyncio.AbstractEventLoop):
        pass

    with pytest.raises(ConfigError, match="Foreign") as caught:
        VirtualClock().attach(Foreign())
    assert "new_event_loop" in caught.value.next_step


def test_retry_libraries_wait_on_it() -> None:
    tenacity = pytest.importorskip("tenacity", reason="tenacity is not installed")
    clock = VirtualClock()
    starts: list[float] = []

    @tenacity.retry(wait=tenacity.wait_exponential(multiplier=2), stop=tenacity.stop_after_attempt(4), reraise=True)
    def attempt() -> None:
        starts.append(clock.monotonic())
        if len(starts) < 4:
            raise OSError

    with clock.install():
        attempt()
    assert [after - before for before, after in pairwise(starts)] == [2.0, 4.0, 8.0]
