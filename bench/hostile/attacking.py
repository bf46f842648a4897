"""Starting the process that attacks, and ending it before it harms the machine."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable

from winnow.parent import PARENT_VARIABLE

_GRACE = 15.0
"""Seconds after an attack's own end in which it puts away what it holds."""
_LOOK = 0.2
MOST = 1 << 30
"""Bytes by which a cluster may grow before an attack on it is ended."""


class Attacking:
    """An attack under way."""

    def __init__(self, process: asyncio.subprocess.Process, grown: Callable[[], int]) -> None:
        """`grown`: bytes by which the cluster has grown."""
        self._process, self._grown = process, grown
        self.most = 0
        """Bytes by which the cluster had grown at most."""
        self.stopped = False
        """Whether it was ended, because the cluster grew too much or it took too long."""

    async def outcomes(self, seconds: float) -> dict[str, int]:
        """Waits until it has ended, `seconds` and a grace at most; how often each outcome came."""
        talking = asyncio.create_task(self._process.communicate())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds + _GRACE):
                while not talking.done() and self._look() < MOST:
                    await asyncio.wait({talking}, timeout=_LOOK)
        self.stopped = not talking.done()
        if self.stopped:
            self._process.kill()
        said, _ = await talking
        found = dict(json.loads(said)) if said else {}
        if self._process.returncode and not self.stopped:
            raise RuntimeError(f"the attacker ended with {self._process.returncode}: see above")
        return found

    def _look(self) -> int:
        grown = self._grown()
        self.most = max(self.most, grown)
        return grown

    def end(self) -> None:
        """Ends it at once, if it has not ended."""
        if self._process.returncode is None:
            self._process.kill()


@contextlib.asynccontextmanager
async def attacking(
    name: str,
    front: str,
    node: str,
    http: str,
    seconds: float,
    grown: Callable[[], int],
    seed: int = 0,
) -> AsyncIterator[Attacking]:
    """Attacks until left, or until the attack is over."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.hostile.attacker", name, front, node, http, f"{seconds}"),
        f"{seed}",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
    )
    attack = Attacking(process, grown)
    try:
        yield attack
    finally:
        attack.end()
        await process.wait()
