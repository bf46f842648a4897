"""The shards of a content node, as callers see them."""

from collections.abc import Sequence

from winnow.content_node.served_shard import ServedShard
from winnow.deadline import Deadline
from winnow.domain.shard import NodeReport, ShardFault
from winnow.errors import IdentityError, LeavingError, UnavailableError


class ServedShards:
    """A `ContentNode` that refuses calls for shards that it does not serve."""

    def __init__(self, shards: Sequence[ServedShard]) -> None:
        """`shards` has at least one."""
        self._shards = shards

    async def report(self, deadline: Deadline) -> NodeReport:
        """Returns the served shards, and the errors of the others."""
        infos, faults = [], []
        for each in self._shards:
            try:
                infos.append(await each.info(deadline))
            except LeavingError:
                raise
            except UnavailableError as error:
                faults.append(ShardFault(each.number, error))
        return NodeReport(tuple(infos), tuple(faults))

    def searcher(self, shard: int | None) -> ServedShard:
        """Returns a shard; None stands for the only one of the node.

        Raises:
            IdentityError: the node has several shards, and the call names none.
            UnavailableError: the node does not have the shard.

        """
        if shard is None:
            return self._only()
        if own := [each for each in self._shards if each.number == shard]:
            # a shard of another index may have the same number: it was refused
            return min(own, key=lambda each: bool(each.fault))
        # a shard whose files cannot be read has no number, and the reason for it
        unknown = [each for each in self._shards if each.number is None]
        if len(unknown) == 1:
            return unknown[0]
        raise UnavailableError(f"this node does not serve shard {shard}")

    def _only(self) -> ServedShard:
        if len(self._shards) > 1:
            raise IdentityError(
                f"this node serves {len(self._shards)} shards, and the call names none of them: "
                "update the front node"
            )
        return self._shards[0]
