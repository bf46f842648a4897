"""Runs an attack in a separate process, so that it does not slow down the polite client directly.

    python -m bench.hostile.attacker NAME FRONT NODE HTTP SECONDS SEED

Prints the count of each outcome as JSON. The process has a low priority, as if it ran on another
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

from bench.hostile.attacks import calls, half_sent, http, mixed, sockets
from bench.hostile.attacks.greedy import LOADS, send_greedy_load
from bench.hostile.attacks.target import Attack, Target
from winnow.parent import PARENT_VARIABLE, die_with_parent

ATTACKS: dict[str, Attack] = {
    "questions": calls.send_random_questions,
    "shards": calls.send_random_shard_calls,
    "bombs": calls.send_gzip_bombs,
    "connections": sockets.hold_idle_connections,
    "watches": calls.open_health_watches,
    "reflections": calls.query_reflection,
    "streams": calls.open_idle_streams,
    "others": sockets.speak_other_protocols,
    "cancels": calls.cancel_questions,
    "half-sent": half_sent.send_half_messages,
    "burst": calls.send_burst,
    "mixed": mixed.run_mixed,
    "held": mixed.hold_connections,
    "http": http.send_random_requests,
    "http-held": http.hold_idle_connections,
    "http-bodies": http.send_long_bodies,
    **{name: partial(send_greedy_load, load) for name, load in LOADS.items()},
}
MAX_GROWTH = 1 << 30
"""Memory growth of the attacked cluster, in bytes, at which an attack is ended early."""
_NICENESS = 10
_GRACE = 15.0
"""Maximum time in seconds for an attack to close its connections at its end."""
_POLL = 0.2


class AttackProcess:
    """A running attack in a separate process."""

    def __init__(self, process: asyncio.subprocess.Process, growth: Callable[[], int]) -> None:
        """`growth` returns the memory growth of the cluster, in bytes."""
        self._process, self._growth = process, growth
        self.max_growth = 0
        """Largest growth so far, in bytes."""
        self.ended_early = False
        """Whether the attack was killed: the cluster grew too much, or the attack took too long."""

    async def outcomes(self, seconds: float) -> Counter[str]:
        """Waits for the end, at most `seconds` and a grace period; returns the outcome counts."""
        output = asyncio.create_task(self._process.communicate())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds + _GRACE):
                while not output.done() and self.max_growth < MAX_GROWTH:
                    self.max_growth = max(self.max_growth, self._growth())
                    await asyncio.wait({output}, timeout=_POLL)
        self.ended_early = not output.done()
        if self.ended_early:
            self._process.kill()
        outcomes, _ = await output
        if self._process.returncode and not self.ended_early:
            raise RuntimeError(
                f"the attacker ended with exit code {self._process.returncode}: see its log above"
            )
        return Counter(json.loads(outcomes) if outcomes else {})


@contextlib.asynccontextmanager
async def attack_process(
    name: str, target: Target, growth: Callable[[], int] = lambda: 0
) -> AsyncIterator[AttackProcess]:
    """Runs an attack in another process. The exit of the context kills the process."""
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
    """Runs the attack that the command line names, and prints its outcomes."""
    die_with_parent()
    os.nice(_NICENESS)
    name, front, node, http_address, seconds, seed = sys.argv[1:]
    target = Target(
        front=front, node=node, http=http_address, seconds=float(seconds), seed=int(seed)
    )
    print(json.dumps(asyncio.run(ATTACKS[name](target))))


if __name__ == "__main__":
    main()
