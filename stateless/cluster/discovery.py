"""The content nodes by address, each polled for the shard that it serves.

Knows targets, nodes and time. A poll also tells that a node is alive and how busy it is. A health
stream would stay open while its process is stopped, so a call with a time limit is needed anyway.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from winnow.deadline import Clock, Deadline
from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError, WinnowError
from winnow.resolving import Resolver
from winnow.searcher import Searcher
from winnow.stateless.cluster.node import Node, present
from winnow.stateless.cluster.polling import PollingSchedule

_log = structlog.get_logger("stateless.cluster.discovery")
_JITTER = 0.2
"""Share by which the time between polls varies, so that fronts do not poll in step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """How often to look up targets and to poll nodes, in seconds."""

    resolve_every: float = 5.0
    poll_every: float = 0.5
    poll_idle: float = 0.0
    """Between two polls of a healthy node while no question comes; `poll_every` if that is more."""
    poll_timeout: float = 1.0
    misses: int = 2
    """Polls in a row without a good reply, after which a node is left out."""


class Discovery:
    """Nodes by address."""

    def __init__(
        self,
        resolvers: Sequence[Resolver],
        open_node: Callable[[str], Node],
        changed: Callable[[], None],
        *,
        settings: DiscoverySettings,
        chance: random.Random,
        clock: Clock = time.monotonic,
    ) -> None:
        """`changed` is called when a node comes, goes, or says something else than before."""
        self._resolvers, self._open_node, self._changed = resolvers, open_node, changed
        self._settings, self._chance = settings, chance
        self._clock, self._schedule = clock, PollingSchedule(clock)
        self.record_request = self._schedule.record_request
        """Call it for every question and write: it has nodes polled more often."""
        self.nodes: dict[str, Node] = {}
        self._named: dict[str, frozenset[str]] = {}
        """Addresses by target."""
        self._left_out = asyncio.Event()
        """Set when the next node that was present is left out."""
        self._unreported = False
        """Whether reporting the last change failed."""

    def present(self) -> dict[str, ShardInfo]:
        """The nodes that may be asked questions, and what they said."""
        return present(self.nodes.values(), self._settings.misses)

    def seconds_per_read(self, address: str) -> float:
        """Seconds per passage, as the node said; 0 if that is not known."""
        node = self.nodes.get(address)
        return node.info.seconds_per_read if node is not None and node.info is not None else 0.0

    def others_reads(self, address: str) -> int:
        """Passages that a node has in hand for other fronts; 0 if that is not known."""
        node = self.nodes.get(address)
        return node.others_reads if node is not None else 0

    def now(self) -> float:
        """The time on the clock by which silences are measured."""
        return self._clock()

    def silence(self, address: str) -> float:
        """Seconds for which a node may have changed unnoticed; infinite if it is gone."""
        node = self.nodes.get(address)
        return self._clock() - node.heard_at if node is not None else float("inf")

    def searcher(self, address: str) -> Searcher:
        """The searcher of a node; raises UnavailableError if the node is gone."""
        if address not in self.nodes:
            raise UnavailableError(f"{address}: the node is no longer in the cluster")
        return self.nodes[address].searcher

    async def run(self) -> None:
        """Polls until it is cancelled; then closes what it opened."""
        async with asyncio.TaskGroup() as group:
            for resolver in self._resolvers:
                group.create_task(self._follow(resolver, group))

    async def _follow(self, resolver: Resolver, group: asyncio.TaskGroup) -> None:
        """Looks a target up periodically: each target by itself, since a look-up may hang."""
        while True:
            left_out = self._left_out
            await self._resolve(resolver)
            for address in self._listed() - self.nodes.keys():
                node = self.nodes[address] = self._open_node(address)
                group.create_task(self._watch(node))
            # not wait_for, which up to Python 3.11 may swallow a cancellation
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.resolve_every):
                    await left_out.wait()

    def _listed(self) -> set[str]:
        return {address for addresses in self._named.values() for address in addresses}

    async def _resolve(self, resolver: Resolver) -> None:
        """Looks a target up; while that fails its last addresses stay."""
        try:
            self._named[resolver.target] = await resolver.addresses()
        except WinnowError as error:
            _log.warning("cannot resolve", target=resolver.target, reason=str(error))
        except Exception:  # noqa: BLE001 (polling must go on)
            _log.exception("resolving failed unexpectedly", target=resolver.target)

    async def _watch(self, node: Node) -> None:
        """Polls a node until it is neither listed, nor present, nor has calls in hand."""
        try:
            while await self._poll(node):
                varied = 1 + _JITTER * (2 * self._chance.random() - 1)
                await self._schedule.wait(self._pause(node) * varied)
        finally:
            self.nodes.pop(node.address, None)
            await self._close(node)

    def _pause(self, node: Node) -> float:
        """Seconds until the next poll.

        The first question after a quiet time has all nodes polled at once.
        """
        often, seldom = self._settings.poll_every, self._settings.poll_idle
        closely = (
            self._schedule.is_active or node.error is not None or node.busy() or self._unreported
        )
        return often if closely else max(often, seldom)

    async def _poll(self, node: Node) -> bool:
        """Polls a node once; returns whether to go on."""
        before = self._state(node)
        await self._ask(node)
        there = node.present(self._settings.misses)
        kept = there or node.address in self._listed() or node.busy()
        if not kept:
            del self.nodes[node.address]
        if self._unreported or not kept or self._state(node) != before:
            self._report()
        if before[0] and not there:
            self._look_up_now()
        return kept

    def _look_up_now(self) -> None:
        """Has every target looked up at once: another node may have taken the place of one."""
        self._left_out.set()
        self._left_out = asyncio.Event()

    async def _ask(self, node: Node) -> None:
        began = self._clock()
        try:
            info = await node.searcher.info(Deadline.after(self._settings.poll_timeout))
            node.heard(info, began)
        except WinnowError as error:
            node.missed(error)
        except Exception as error:  # noqa: BLE001 (polling must go on)
            _log.exception("poll failed unexpectedly", address=node.address)
            node.missed(WinnowError(f"{node.address}: its reply makes no sense: {error}"))

    def _report(self) -> None:
        """Reports a change; if that fails, the next poll repeats it."""
        try:
            self._changed()
            self._unreported = False
        except Exception:  # noqa: BLE001 (polling must go on)
            _log.exception("change of nodes failed")
            self._unreported = True

    async def _close(self, node: Node) -> None:
        try:
            await node.close()
        except Exception:  # noqa: BLE001 (the other nodes are polled all the same)
            _log.exception("closing a node failed unexpectedly", address=node.address)

    def _state(self, node: Node) -> tuple[bool, ShardInfo | None, str]:
        return node.present(self._settings.misses), node.info, str(node.error)
