"""Threads that wait for the event loop run in turns with it."""

import asyncio
from random import Random
from typing import Any

import pytest

from simulation import blocking_work
from simulation.loop import SimulatedLoop


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        asyncio, "run_coroutine_threadsafe", asyncio.run_coroutine_threadsafe
    )  # restored at the end
    blocking_work.install()


async def double(value: int) -> int:
    await asyncio.sleep(1.0)
    return 2 * value


def copy_on(loop: asyncio.AbstractEventLoop, seen: list[float]) -> int:
    value = 1
    for _ in range(3):
        value = asyncio.run_coroutine_threadsafe(double(value), loop).result()
        seen.append(loop.time())
    return value


def new_loop() -> SimulatedLoop:
    return SimulatedLoop(Random(1))  # type: ignore[abstract]


def test_work_waits_for_coroutines_in_virtual_time() -> None:
    loop, seen = new_loop(), list[float]()
    begin: Any = blocking_work.blocking(copy_on)

    async def main() -> int:
        return int(await asyncio.to_thread(begin, loop, seen))

    assert loop.run(main()) == 8
    assert [round(at) for at in seen] == [1, 2, 3]


def test_a_thread_that_still_waits_ends_with_the_loop() -> None:
    loop, ended = new_loop(), list[str]()

    def wait() -> None:
        try:
            asyncio.run_coroutine_threadsafe(double(1), loop).result()
        except blocking_work.AbandonedError:
            ended.append("abandoned")
            raise

    async def main() -> None:
        asyncio.get_running_loop().run_in_executor(None, blocking_work.blocking(wait))
        await asyncio.sleep(0.5)

    loop.run(main())
    loop.close()
    assert ended == ["abandoned"]
