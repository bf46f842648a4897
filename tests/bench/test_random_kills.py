"""Random kills: what is down at a moment, and that everything serves at the end."""

import asyncio
import signal
from functools import partial
from typing import Any

from tenacious import happens

import bench.random_kills
from bench.random_kills import RandomKills


class Children:
    """Processes that only record signals and restarts."""

    def __init__(self, *names: str) -> None:
        self.alive = dict.fromkeys(names, True)

    def send(self, name: str, number: signal.Signals) -> None:
        assert number is signal.SIGKILL
        self.alive[name] = False

    def wait(self, name: str) -> int:
        assert not self.alive[name]
        return -9

    def restart(self, name: str) -> None:
        self.alive[name] = True


async def test_processes_are_killed_again_and_again_and_serve_at_the_end(monkeypatch: Any) -> None:
    monkeypatch.setattr(bench.random_kills, "_MAX_DOWN_SECONDS", 0.0)
    monkeypatch.setattr(bench.random_kills, "_START_SECONDS", 0.0)
    children: Any = Children("a", "b", "journal")
    may_serve, waiting = asyncio.Event(), set[str]()

    async def wait_up(name: str) -> None:
        waiting.add(name)
        await may_serve.wait()

    kills = RandomKills(
        children,
        {name: partial(wait_up, name) for name in children.alive},
        replicas=["a", "b"],
        seconds=0.001,
        seed=1,
    )
    async with kills.running():
        assert kills.has_replica
        assert not kills.losses
        await happens(lambda: waiting == {"a", "b", "journal"})
        assert kills.down == {"a", "b", "journal"}
        assert not kills.has_replica
        assert kills.losses == 1
        may_serve.set()
        await happens(lambda: min(kills.kills[name] for name in children.alive) >= 3)
    assert all(children.alive.values())
    assert not kills.down
    assert kills.has_replica
