"""Discovers content nodes by DNS, and polls each node for its shards, health and load.

Nodes are polled because a health stream does not detect a hung process. Only a call with a timeout
does.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from winnow.deadline import Clock, Deadline
from winnow.domain.shard import NodeReport, ShardInfo
from winnow.errors import UnavailableError, WinnowError
from winnow.resolving import Resolver
from winnow.searcher import ContentNode, Searcher
from winnow.stateless.cluster.node import Node, ReplicaAt, ReplicaInfos, present_replicas
from winnow.stateless.cluster.polling import DiscoverySettings, PollingSchedule

_log = structlog.get_logger("stateless.cluster.discovery")
_JITTER = 0.2
"""Share by which the time between polls varies, so that fronts do not poll at the same moment."""


class Discovery:
    """The nodes that were found, with their last replies. `run` discovers and polls nodes."""

    def __init__(
        self,
        resolvers: Sequence[Resolver],
        open_node: Callable[[str], Node],
        on_change: Callable[[], None],
        *,
        settings: DiscoverySettings,
        rng: random.Random,
        clock: Clock = time.monotonic,
    ) -> None:
        """Finds no node yet; see `run`.

        `on_change` is called when a node is added or removed, or when its report changes.
        """
        self._resolvers, self._open_node, self._on_change = resolvers, open_node, on_change
        self._settings, self._rng = settings, rng
        self._clock, self._schedule = clock, PollingSchedule(clock)
        self.record_request = self._schedule.record_request
        """Records a question or a write. For a while after that, nodes are polled more often."""
        self.nodes: dict[str, Node] = {}
        """The nodes by address."""
        self._resolved: dict[str, frozenset[str]] = {}
        """The last resolved addresses of each target."""
        self._node_lost = asyncio.Event()
        """Is set when a present node becomes absent, and is then replaced."""
        self._change_failed = False
        """Whether the last call of `on_change` failed."""

    def present_replicas(self) -> ReplicaInfos:
        """The last reports of the replicas that may get new calls."""
        return present_replicas(self.nodes.values(), self._settings.max_misses)

    def info(self, replica: ReplicaAt) -> ShardInfo | None:
        """The last report of a replica; None if its node was removed or no longer serves it."""
        node = self.nodes.get(replica.address)
        return node.info(replica.shard) if node is not None else None

    def others_reads(self, address: str) -> int:
        """Number of passages that a node is reading for other fronts; 0 if it is not known."""
        node = self.nodes.get(address)
        return node.others_reads if node is not None else 0

    def now(self) -> float:
        """The current time on the clock of `silence`."""
        return self._clock()

    def silence(self, address: str) -> float:
        """Seconds since the start of the last successful poll of a node; infinite if the node was
        removed.
        """
        node = self.nodes.get(address)
        return self._clock() - node.replied_at if node is not None else float("inf")

    def searcher(self, replica: ReplicaAt) -> Searcher:
        """Returns the searcher of a replica; raises UnavailableError if its node was removed."""
        return self.content_node(replica.address).searcher(replica.shard)

    def content_node(self, address: str) -> ContentNode:
        """Returns the node at an address; raises UnavailableError if the node was removed."""
        if address not in self.nodes:
            raise UnavailableError(f"{address}: the node is no longer in the cluster")
        return self.nodes[address].content

    async def run(self) -> None:
        """Discovers and polls nodes until this task is cancelled. Then closes all nodes."""
        async with asyncio.TaskGroup() as group:
            for resolver in self._resolvers:
                group.create_task(self._follow(resolver, group))

    async def _follow(self, resolver: Resolver, group: asyncio.TaskGroup) -> None:
        """Resolves one target periodically. A hung lookup does not delay the other targets."""
        while True:
            node_lost = self._node_lost
            await self._resolve(resolver)
            for address in self._resolved_addresses() - self.nodes.keys():
                node = self.nodes[address] = self._open_node(address)
                group.create_task(self._watch(node))
            # not `wait_for`, which may swallow a cancellation up to Python 3.11
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.resolve_every):
                    await node_lost.wait()

    def _resolved_addresses(self) -> set[str]:
        return {address for addresses in self._resolved.values() for address in addresses}

    async def _resolve(self, resolver: Resolver) -> None:
        """Resolves a target. If this fails, the target keeps its last addresses."""
        try:
            self._resolved[resolver.target] = await resolver.addresses()
        except WinnowError as error:
            _log.warning("cannot resolve", target=resolver.target, reason=str(error))
        except Exception:  # noqa: BLE001 (polling must continue)
            _log.exception("resolving failed unexpectedly", target=resolver.target)

    async def _watch(self, node: Node) -> None:
        """Polls a node until it can be removed; then closes the node."""
        if node.polls is not None:
            node.polls.follow(partial(self._record, node), lambda: self._is_due_soon(node))
        try:
            while await self._poll(node):
                await self._wait(node)
        finally:
            self.nodes.pop(node.address, None)
            await self._close(node)

    async def _wait(self, node: Node) -> None:
        """Waits until the node is to be polled. Polls for other indexes count, too."""
        jitter = 1 + _JITTER * (2 * self._rng.random() - 1)
        seconds = self._poll_interval(node) * jitter
        while seconds > 0:
            polled_at = node.polled_at
            await self._schedule.wait(seconds)
            if node.polled_at == polled_at:
                return
            seconds = node.polled_at + self._poll_interval(node) * jitter - self._clock()

    def _is_due_soon(self, node: Node) -> bool:
        """Whether the node is to be polled before the next poll of a busy index."""
        due = node.polled_at + self._poll_interval(node)
        return due - self._clock() <= self._settings.poll_every

    def _poll_interval(self, node: Node) -> float:
        """Seconds until the next poll, unless a request wakes the schedule earlier."""
        poll_every, poll_idle = self._settings.poll_every, self._settings.poll_idle
        needs_watch = node.error is not None or node.busy() or self._change_failed
        if self._schedule.is_active or needs_watch:
            return poll_every
        return max(poll_every, poll_idle)

    async def _poll(self, node: Node) -> bool:
        """Polls a node once. Returns whether to poll the node again.

        A node that is not resolved, not present and has no running calls is removed.
        """
        if node.polls is None:
            started = self._clock()
            self._record(node, await self._fetch_report(node), started)
        else:
            await node.polls.poll(Deadline.after(self._settings.poll_timeout))
        if self._is_kept(node):
            return True
        del self.nodes[node.address]
        self._report_change()
        return False

    def _record(self, node: Node, result: NodeReport | WinnowError, started: float) -> None:
        """Records the result of a poll, and reports a change of the node's state."""
        before = self._state(node)
        node.record(result, started)
        after = self._state(node)
        if self._change_failed or after != before:
            self._report_change()
        if before[0] and not after[0]:
            self._resolve_now()

    def _is_kept(self, node: Node) -> bool:
        is_present = node.is_present(self._settings.max_misses)
        return is_present or node.address in self._resolved_addresses() or node.busy()

    def _resolve_now(self) -> None:
        """Resolves every target immediately, because a new node may have replaced a lost node."""
        self._node_lost.set()
        self._node_lost = asyncio.Event()

    async def _fetch_report(self, node: Node) -> NodeReport | WinnowError:
        try:
            return await node.content.report(Deadline.after(self._settings.poll_timeout))
        except WinnowError as error:
            return error
        except Exception as error:  # noqa: BLE001 (polling must continue)
            _log.exception("poll failed unexpectedly", address=node.address)
            return WinnowError(f"{node.address}: invalid reply to a poll: {error}")

    def _report_change(self) -> None:
        """Calls `on_change`. If this fails, the next poll calls `on_change` again."""
        try:
            self._on_change()
            self._change_failed = False
        except Exception:  # noqa: BLE001 (polling must continue)
            _log.exception("a change of the nodes could not be applied")
            self._change_failed = True

    async def _close(self, node: Node) -> None:
        try:
            await node.close()
        except Exception:  # noqa: BLE001 (polling must continue)
            _log.exception("closing a node failed unexpectedly", address=node.address)

    def _state(self, node: Node) -> tuple[object, ...]:
        """The state of a node, whose changes are reported: presence, shards and errors."""
        errors = [(shard, str(error)) for shard, error in node.errors()]
        return node.is_present(self._settings.max_misses), node.infos, errors
