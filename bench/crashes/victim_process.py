"""Starts a victim, sends commands to it, and sees its end."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Self

from winnow.faultpoints import VARIABLE
from winnow.parent import PARENT_VARIABLE

_ROOT = Path(__file__).parent.parent.parent


class DiedError(Exception):
    """The process ended before it replied."""


class VictimProcess:
    """A victim that runs; a context manager that leaves no process behind."""

    def __init__(self, shard: Path, kill_at: str = "") -> None:
        """`kill_at` is a fault point as in `winnow.faultpoints`; empty for none."""
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
        """The end of its log."""

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
        self._reading = asyncio.gather(self._read_replies(), self._read_log())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self.end()
        for future in (self._ready, *self._replies.values()):
            if future.done() and not future.cancelled():
                future.exception()  # retrieved, so that asyncio does not warn about it

    async def ready(self) -> None:
        """Waits until the victim serves; raises DiedError."""
        await self._ready

    def send(self, kind: str, value: Any = None) -> "asyncio.Future[Any]":
        """Sends a command at once; the future has its reply, or DiedError."""
        self._number += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._replies[self._number] = future
        if self._reading.done() or self._process.stdin is None:
            future.set_exception(DiedError(self.last_log_lines))
        else:
            line = json.dumps({"number": self._number, kind: value}) + "\n"
            self._process.stdin.write(line.encode())
        return future

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended the process, and not an error."""
        return self._process.returncode == -9

    async def end(self) -> None:
        """Waits for the end of the process."""
        await self._process.wait()
        await self._reading

    async def _read_replies(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if not line.endswith(b"\n"):
                break  # it died while it wrote
            reply = json.loads(line)
            if "ready" in reply:
                self._ready.set_result(True)
            else:
                self._replies.pop(reply["number"]).set_result(reply["value"])
        for future in (self._ready, *self._replies.values()):
            if not future.done():
                future.set_exception(DiedError(self.last_log_lines))

    async def _read_log(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self.last_log_lines = (self.last_log_lines + line.decode(errors="replace"))[-4_000:]
