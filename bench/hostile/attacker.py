"""The process that attacks: separate, so that it does not slow down the polite client itself.

    python -m bench.hostile.attacker NAME FRONT NODE HTTP SECONDS SEED

Prints how often each outcome came, as JSON. It runs at a low priority, as if it were another
machine.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial

from bench.hostile.attacks import calls, half, http, mixed, sockets
from bench.hostile.attacks.greedy import LOADS, greedy
from bench.hostile.attacks.target import Attack, Target
from winnow.parent import PARENT_VARIABLE, die_with_parent

ATTACKS: dict[str, Attack] = {
    "questions": calls.questions,
    "shards": calls.shards,
    "bombs": calls.bombs,
    "connections": sockets.connections,
    "watches": calls.watches,
    "reflections": calls.reflections,
    "streams": calls.streams,
    "others": sockets.others,
    "cancels": calls.cancels,
    "half-sent": half.half_sent,
    "burst": calls.burst,
    "mixed": mixed.mixed,
    "held": mixed.held,
    "http": http.fuzzed,
    "http-held": http.connections,
    "http-bodies": http.bodies,
    **{name: partial(greedy, load) for name, load in LOADS.items()},
}
MOST_GROWTH = 1 << 30
"""Bytes by which a cluster may grow before an attack on it is ended."""
_NICE = 10
_GRACE = 15.0
"""Seconds after an attack's own end in which it closes what it holds."""
_POLL = 0.2


class AttackProcess:
    """An attack under way."""

    def __init__(self, process: asyncio.subprocess.Process, growth: Callable[[], int]) -> None:
        """`growth` returns the bytes by which the cluster has grown."""
        self._process, self._growth = process, growth
        self.most_growth = 0
        """Most bytes by which the cluster had grown."""
        self.stopped = False
        """Whether the attack was ended early: the cluster grew too much, or it took too long."""

    async def outcomes(self, seconds: float) -> Counter[str]:
        """Waits for the end, `seconds` and a grace at most; returns how often each outcome came."""
        talking = asyncio.create_task(self._process.communicate())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds + _GRACE):
                while not talking.done() and self.most_growth < MOST_GROWTH:
                    self.most_growth = max(self.most_growth, self._growth())
                    await asyncio.wait({talking}, timeout=_POLL)
        self.stopped = not talking.done()
        if self.stopped:
            self._process.kill()
        printed, _ = await talking
        if self._process.returncode and not self.stopped:
            raise RuntimeError(f"the attacker ended with {self._process.returncode}: see above")
        return Counter(json.loads(printed) if printed else {})


@contextlib.asynccontextmanager
async def attacking(
    name: str, target: Target, growth: Callable[[], int] = lambda: 0
) -> AsyncIterator[AttackProcess]:
    """Attacks in another process, until left or until the attack is over."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.hostile.attacker", name, target.front, target.node),
        *(target.http, f"{target.seconds}", f"{target.seed}"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
    )
    try:
        yield AttackProcess(process, growth)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def main() -> None:
    """Runs one attack."""
    die_with_parent()
    os.nice(_NICE)
    name, front, node, http_address, seconds, seed = sys.argv[1:]
    target = Target(
        front=front, node=node, http=http_address, seconds=float(seconds), seed=int(seed)
    )
    print(json.dumps(asyncio.run(ATTACKS[name](target))))


if __name__ == "__main__":
    main()
