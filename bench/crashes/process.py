"""A victim from the outside: commands and answers over pipes, and its end."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Self

from winnow.faultpoints import VARIABLE
from winnow.parent import PARENT_VARIABLE

ROOT = Path(__file__).parent.parent.parent


class DiedError(Exception):
    """The process ended before it answered."""


class Process:
    """A victim that runs; a context manager that leaves none behind."""

    def __init__(self, shard: Path, kill_at: str = "") -> None:
        """`kill_at` as in `winnow.faultpoints`; empty for nowhere."""
        self._arguments = (sys.executable, "-m", "bench.crashes.victim", str(shard))
        self._environment = {
            **os.environ,
            VARIABLE: kill_at,
            PARENT_VARIABLE: str(os.getpid()),
            "PYTHONPATH": str(ROOT),
        }
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self.last_words = ""

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._arguments,
            env=self._environment,
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        self._ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.gather(self._read(), self._hear())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kill()
        await self._process.wait()
        await self._reading
        for future in (self._ready, *self._answers.values()):
            if future.done() and not future.cancelled():
                future.exception()  # nobody else asks for it any more

    async def ready(self) -> None:
        """Waits until it serves; raises DiedError."""
        await self._ready

    def tell(self, kind: str, value: Any = None) -> "asyncio.Future[Any]":
        """Sends a command at once; what it answers, or DiedError."""
        self._number += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[self._number] = future
        if self._reading.done() or self._process.stdin is None:
            future.set_exception(DiedError(self.last_words))
        else:
            line = json.dumps({"number": self._number, kind: value}) + "\n"
            self._process.stdin.write(line.encode())
        return future

    def kill(self) -> None:
        """Ends it as power loss does, but for the disk's own cache."""
        if self._process.returncode is None:
            self._process.kill()

    @property
    def killed(self) -> bool:
        """Whether it was ended by SIGKILL, and not by an error of its own."""
        return self._process.returncode == -9

    async def end(self) -> None:
        """Waits for its end."""
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if not line.endswith(b"\n"):
                break  # it died while it spoke
            said = json.loads(line)
            if "ready" in said:
                self._ready.set_result(True)
            else:
                self._answers.pop(said["number"]).set_result(said["said"])
        for future in (self._ready, *self._answers.values()):
            if not future.done():
                future.set_exception(DiedError(self.last_words))

    async def _hear(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self.last_words = (self.last_words + line.decode(errors="replace"))[-4_000:]
