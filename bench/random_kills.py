"""Kills processes with SIGKILL at random moments, and starts them again."""

import asyncio
import contextlib
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping

from winnow.cli.local.processes import Processes
from winnow.deadline import Deadline
from winnow.errors import WinnowError
from winnow.rpc.channel import open_channel
from winnow.stateless.replicas.remote import RemoteNode

_MAX_DOWN_SECONDS = 2.0
"""Maximum number of seconds between a kill and the restart."""
_KILLED_AGAIN, _START_SECONDS = 0.25, 5.0
"""Share of the restarts that are killed too, and in how many seconds."""
_POLL_SECONDS = 0.2


async def kill_and_restart(children: Processes, name: str, down_seconds: float = 0.0) -> None:
    """Kills a process, and starts it again after some seconds. Does not wait until it serves."""
    children.send(name, signal.SIGKILL)
    await asyncio.to_thread(children.wait, name)
    await asyncio.sleep(down_seconds)
    children.restart(name)  # in this thread, because a child ends with the thread that started it


async def wait_loaded(
    address: str, index_ids: Collection[str] = ("",), timeout: float = 600.0
) -> None:
    """Waits until a node replies and has loaded all its shards of these indexes.

    An empty id is the default index. Raises TimeoutError after `timeout` seconds.
    """
    deadline, reason = Deadline.after(timeout), ""
    async with open_channel(address) as channel:
        for index_id in index_ids:
            node = RemoteNode(channel, address, index_id)
            while True:
                try:
                    faults = (await node.report(Deadline.after(5.0))).faults
                    if not faults:
                        break
                    reason = "; ".join(str(each.error) for each in faults)
                except WinnowError as error:
                    reason = str(error)
                if deadline.expired():
                    raise TimeoutError(f"{address} has not loaded its shards: {reason}")
                await asyncio.sleep(_POLL_SECONDS)


class RandomKills:
    """Kills each of some processes repeatedly, independently of the others."""

    def __init__(
        self,
        children: Processes,
        wait_up: Mapping[str, Callable[[], Awaitable[None]]],
        *,
        replicas: Collection[str],
        seconds: float,
        seed: int,
    ) -> None:
        """Kills nothing yet; see `running`.

        Args:
            children: the processes.
            wait_up: waits until a process serves, by its name.
            replicas: names of the nodes, each of which has all shards.
            seconds: mean time between the start of a process and its kill; 0 for no kills.
            seed: seed of the random moments.

        """
        self._children, self._wait_up, self._replicas = children, wait_up, frozenset(replicas)
        self._seconds = seconds
        self._rngs = {name: random.Random(f"{seed} {name}") for name in wait_up}
        self.kills: Counter[str] = Counter()
        """Number of kills of each process."""
        self.down: set[str] = set()
        """Names of the processes that were killed and do not serve yet."""
        self._losses = 0

    @property
    def losses(self) -> int:
        """Number of times at which the last replica was killed.

        No replica was up during a question if `has_replica` was false when it began, or this
        number has grown.
        """
        return self._losses

    @property
    def has_replica(self) -> bool:
        """Whether a replica of each shard is up."""
        return not self._replicas <= self.down

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Kills processes within the context. At its end all of them serve."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for name in self._wait_up if self._seconds else ():
                group.create_task(self._kill_repeatedly(name, stop))
            try:
                yield
            finally:
                stop.set()

    async def _kill_repeatedly(self, name: str, stop: asyncio.Event) -> None:
        rng = self._rngs[name]
        while not await _is_set_within(stop, rng.expovariate(1 / self._seconds)):
            self.down.add(name)
            if name in self._replicas and not self.has_replica:
                self._losses += 1
            await self._kill(name)
            if rng.random() < _KILLED_AGAIN:
                await asyncio.sleep(rng.uniform(0, _START_SECONDS))
                await self._kill(name)
            await self._wait_up[name]()
            self.down.discard(name)

    async def _kill(self, name: str) -> None:
        self.kills[name] += 1
        down_seconds = self._rngs[name].uniform(0, _MAX_DOWN_SECONDS)
        await kill_and_restart(self._children, name, down_seconds)


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Waits until an event is set, or the time is over; returns whether it is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
