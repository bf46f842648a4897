"""A shard that loads holds up nobody: neither the event loop nor the end of the process."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from tenacious import LONG

from winnow.content_node.daemon_work import DaemonWork
from winnow.errors import ArtefactError


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


async def test_the_result_is_returned() -> None:
    loading = DaemonWork(lambda: 7)
    assert await loading.result() == 7


async def test_the_error_is_raised() -> None:
    def damaged() -> None:
        raise ArtefactError("graph.hnsw is damaged")

    with pytest.raises(ArtefactError, match="is damaged"):
        await DaemonWork(damaged).result()


def test_the_event_loop_ends_while_a_shard_loads(go_on: threading.Event) -> None:
    loading = DaemonWork(lambda: go_on.wait(LONG))

    async def given_up() -> None:
        task = asyncio.create_task(loading.result())
        await asyncio.wait([task], timeout=0)
        assert loading.is_running
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(given_up())
    assert loading.is_running


async def test_the_result_of_a_wait_that_is_cancelled_at_its_end_is_discarded(
    go_on: threading.Event,
) -> None:
    """The lock of a shard would stay until the process ends."""
    discarded: list[bool] = []
    loading = DaemonWork(lambda: go_on.wait(LONG), discarded.append)
    task = asyncio.create_task(loading.result())
    await asyncio.wait([task], timeout=0)
    thread = loading.running_thread
    assert thread is not None
    go_on.set()
    thread.join(LONG)
    asyncio.get_running_loop().call_soon(task.cancel)  # after the result is set
    with pytest.raises(asyncio.CancelledError):
        await task
    assert discarded == [True]


def test_a_result_after_the_end_is_ignored(go_on: threading.Event) -> None:
    loading = DaemonWork(lambda: go_on.wait(LONG))

    async def given_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loading.result(), 0.01)

    asyncio.run(given_up())
    thread = loading.running_thread
    assert thread is not None
    go_on.set()
    thread.join(LONG)
    assert not loading.is_running
    loading.exit_if_running()  # nothing to leave: this process goes on


ENDLESS = """
import sys
import threading
from pathlib import Path
import winnow.content_node.__main__ as node
from winnow.content_node.composing.loader import ShardLoader
from winnow.content_node.settings import NodeSettings
from winnow.telemetry import logs

logs._CLOSE_SECONDS = 300.0  # the last line is written, however busy the machine is

def load(*_, **options):
    print("loading", file=sys.stderr, flush=True)
    threading.Event().wait()

ShardLoader.load = load
node.run(NodeSettings(shard=Path("."), listen="127.0.0.1:0"))
"""


@pytest.mark.parametrize("first", [":", "exec >&-"], ids=["output", "no output"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_whose_shard_still_loads(
    number: signal.Signals, first: str
) -> None:
    with subprocess.Popen(
        ["sh", "-c", f'{first}; exec "$@"', "sh", sys.executable, "-c", ENDLESS],
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        try:
            while process.stderr.readline() != b"loading\n":
                assert process.poll() is None
            process.send_signal(number)
            _, rest = process.communicate(timeout=LONG / 2)
        finally:
            process.kill()
    assert process.returncode == 0
    assert b"stopped" in rest
