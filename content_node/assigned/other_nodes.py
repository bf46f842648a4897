"""What a node asks of the other nodes of its index: what they hold, and copies of shards."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from winnow.content_node.assigned.steps import other_nodes
from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.pull_shard import LoggedProgress, pull_shard
from winnow.content_node.settings import NodeSettings
from winnow.content_node.transfer.receiving import receive_shard
from winnow.content_node.transfer.remote import PeerNodes
from winnow.domain.assignment import Assignment
from winnow.domain.partition import shares_passages
from winnow.domain.shard import NodeReport
from winnow.errors import UnavailableError, WinnowError
from winnow.settings.errors import SettingsError


class OtherNodes:
    """The other nodes of an assignment, and the snapshots of its shards."""

    def __init__(self, settings: NodeSettings, peer_nodes: PeerNodes) -> None:
        """`settings` are those of this node; `peer_nodes` calls the others."""
        self._settings, self._peer_nodes = settings, peer_nodes

    async def check_name(self, assignment: Assignment | None) -> None:
        """Raises SettingsError if another node has the name of this one."""
        name = self._settings.name
        address = assignment.nodes.get(name, "") if assignment is not None else ""
        if address in ("", self._settings.peer_address):
            return
        try:
            report = await self._peer_nodes.report(name)
        except WinnowError:
            return
        if report.node == name:
            raise SettingsError(
                f"the name {name} is taken by the node at {address}: give this node another --name"
            )

    async def reports(self, assignment: Assignment) -> dict[str, NodeReport]:
        """Returns the reports of the other nodes that reply, by name.

        The address of a node that ended may be that of another node now, or of this one.
        """
        names = other_nodes(assignment, self._settings.name)
        replies = await asyncio.gather(*map(self._peer_nodes.report, names), return_exceptions=True)
        return {
            name: reply
            for name, reply in zip(names, replies, strict=True)
            if not isinstance(reply, BaseException) and reply.node == name
        }

    async def copy_shard(
        self, assignment: Assignment, shard: int, directory: Path, sources: Sequence[str]
    ) -> None:
        """Copies a shard from one of the nodes that serve it, or from a snapshot if none does.

        Raises a WinnowError if that fails.
        """
        settings = self._settings
        if not sources:
            await self._check_absent(assignment, shard)
            if not settings.pull:
                raise UnavailableError(
                    f"no node serves shard {shard}: start the node that has it, or add --pull to "
                    "restore it from a snapshot"
                )
            url = f"{settings.pull.rstrip('/')}/{directory.name}"
            await DaemonWork(partial(pull_shard, url, directory)).result()
            return
        # the nodes share the work of copying
        source = sources[shard % len(sources)]
        try:
            async with self._peer_nodes.open_shard(source, assignment.index_id, shard) as peer:
                await receive_shard(
                    peer,
                    source,
                    directory,
                    LoggedProgress(),
                    feeding=settings.feed,
                    only_holder=len(assignment.holders[shard]) == 1,
                )
        except WinnowError as error:
            if error.public:
                error.with_public(f"copying it from node {source} failed: {error.public}")
            raise

    async def _check_absent(self, assignment: Assignment, shard: int) -> None:
        """Raises UnavailableError if another node has the shard, or does not reply.

        Otherwise a snapshot could be restored beside a newer copy, and both would take writes.
        """
        reports = await self.reports(assignment)
        for name in other_nodes(assignment, self._settings.name):
            report = reports.get(name)
            if report is None:
                raise UnavailableError(
                    f"shard {shard} is not restored from a snapshot, because node {name} does not "
                    "reply and may have a newer copy: start that node"
                )
            numbers = {*(info.shard for info in report.infos), *(f.shard for f in report.faults)}
            for each in numbers:
                if each is not None and shares_passages(each, shard, assignment.shards):
                    raise UnavailableError(f"node {name} has shard {each}, but cannot send it now")
