"""A front process answers normally while its standard error is full, closed or not read."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from tenacious import LONG, until

from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.client.messages import AnswerClient
from winnow.index_directory import shard_directories
from winnow.v1 import answer_pb2

CALLS = 60
"""Three times the log lines that block the smallest pipe."""
PAGE = 4_096
Broken = Callable[[], contextlib.AbstractContextManager[int]]


@contextlib.contextmanager
def full_disk() -> Iterator[int]:
    with Path("/dev/full").open("wb") as full:
        yield full.fileno()


@contextlib.contextmanager
def gone_reader() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@contextlib.contextmanager
def unread_pipe() -> Iterator[int]:
    """Returns a pipe that blocks its writer after about twenty lines."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PAGE)
    yield writer
    os.close(writer)
    os.close(reader)


@pytest.fixture(scope="module")
def node(indexes: dict[int, Path]) -> Iterator[str]:
    [shard] = shard_directories(indexes[1])
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with Processes() as processes, Path(os.devnull).open("wb") as log:
        flags = ["--shard", str(shard), "--listen", address, "--drain-linger", "0"]
        processes.start("node", ["node", *flags], log=log)
        yield address


class Front:
    """A front node in a separate process."""

    def __init__(self, node: str, stderr: int | IO[bytes]) -> None:
        listen, metrics = free_ports(2)
        self.address, self._metrics = f"127.0.0.1:{listen}", f"127.0.0.1:{metrics}"
        flags = ["--shards", node, "--listen", self.address, "--metrics-listen", self._metrics]
        command = [sys.executable, "-m", "winnow", "front", *flags, "--drain-linger", "0"]
        self.process = subprocess.Popen(command, stderr=stderr)

    def dropped(self) -> float:
        """Log lines, as its metrics have it."""
        with urllib.request.urlopen(f"http://{self._metrics}/metrics", timeout=LONG) as page:
            lines = page.read().decode().splitlines()
        [line] = [each for each in lines if each.startswith("winnow_log_lines_dropped_total ")]
        return float(line.split()[1])

    async def ask(self, calls: int) -> int:
        """Asks one after the other; how many were answered."""
        asked = answer_pb2.AnswerRequest(question="Who found penicillin?", passages_to_read=1)
        async with AnswerClient(self.address) as client:
            while not await client.available():
                assert self.process.poll() is None
            replies = [await client.ask(asked, LONG) for _ in range(calls)]
        return sum(bool(reply.answers) for reply in replies)

    def end(self) -> int:
        """Its exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LONG)


@contextlib.contextmanager
def started(node: str, stderr: int | IO[bytes]) -> Iterator[Front]:
    front = Front(node, stderr)
    try:
        yield front
    finally:
        front.process.kill()
        front.process.wait()


@pytest.mark.bundle
@pytest.mark.parametrize("broken", [full_disk, gone_reader, unread_pipe])
async def test_broken_logs_change_no_answer_and_delay_no_shutdown(
    broken: Broken, node: str
) -> None:
    with broken() as stderr, started(node, stderr) as front:
        assert await front.ask(CALLS) == CALLS
        if broken is not unread_pipe:
            until(lambda: front.dropped() >= CALLS)
        assert front.end() == 0


@pytest.mark.bundle
async def test_the_last_lines_of_a_process_are_written(node: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stderr, started(node, stderr) as front:
        assert await front.ask(1) == 1
        assert front.end() == 0
    assert '"draining"' in log.read_text().splitlines()[-2]
    assert '"stopped"' in log.read_text().splitlines()[-1]
