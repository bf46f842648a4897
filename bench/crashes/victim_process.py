"""Starts a process of `bench.crashes.victim`, sends commands to it, and observes its end."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Self

from winnow.faultpoints import VARIABLE
from winnow.parent import PARENT_VARIABLE

_ROOT = Path(__file__).parent.parent.parent


class VictimEndedError(Exception):
    """The victim process ended before it replied."""


class VictimProcess:
    """A running victim; a context manager that leaves no process behind."""

    def __init__(self, shard: Path, kill_at: str = "") -> None:
        """`kill_at` is a fault point of `winnow.faultpoints`; empty for none."""
        self._arguments = (sys.executable, "-m", "bench.crashes.victim", str(shard))
        self._environment = {
            **os.environ,
            VARIABLE: kill_at,
            PARENT_VARIABLE: str(os.getpid()),
            "PYTHONPATH": str(_ROOT),
        }
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self.last_log_lines = ""
        """The last 4,000 characters of the victim's log."""

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._arguments,
            env=self._environment,
            cwd=_ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        self._ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._readers = asyncio.gather(self._read_replies(), self._read_log())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self.wait_ended()
        for future in (self._ready, *self._replies.values()):
            if future.done() and not future.cancelled():
                future.exception()  # retrieved, so that asyncio does not warn about it

    async def wait_ready(self) -> None:
        """Waits until the victim serves the shard; raises VictimEndedError if it ends first."""
        await self._ready

    def send(self, kind: str, value: Any = None) -> "asyncio.Future[Any]":
        """Sends a command; the returned future gets the reply, or VictimEndedError."""
        self._number += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._replies[self._number] = future
        if self._readers.done() or self._process.stdin is None:
            future.set_exception(VictimEndedError(self.last_log_lines))
        else:
            line = json.dumps({"number": self._number, kind: value}) + "\n"
            self._process.stdin.write(line.encode())
        return future

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended the process."""
        return self._process.returncode == -9

    async def wait_ended(self) -> None:
        """Waits until the process has ended and its output is read."""
        await self._process.wait()
        await self._readers

    async def _read_replies(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if not line.endswith(b"\n"):
                break  # the victim was killed while it wrote this line
            reply = json.loads(line)
            if "ready" in reply:
                self._ready.set_result(True)
            else:
                self._replies.pop(reply["number"]).set_result(reply["value"])
        for future in (self._ready, *self._replies.values()):
            if not future.done():
                future.set_exception(VictimEndedError(self.last_log_lines))

    async def _read_log(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self.last_log_lines = (self.last_log_lines + line.decode(errors="replace"))[-4_000:]
