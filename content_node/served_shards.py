"""The shards of a content node, as callers see them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from winnow.content_node.joint_retrieval import JointRetrieval
from winnow.content_node.local_shard import Retrieval
from winnow.content_node.served_shard import LOADING, ServedShard
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import NodeReport, ShardFault
from winnow.errors import IdentityError, LeavingError, UnavailableError
from winnow.searcher import RequestedShard, Retrieved
from winnow.shard_writer import WritableShard


class ServedShards:
    """A `ContentNode` that refuses calls for shards that it does not serve."""

    def __init__(
        self,
        shards: Sequence[ServedShard] = (),
        *,
        joint: JointRetrieval,
        node: str = "",
        address: str = "",
        is_starting: bool = False,
    ) -> None:
        """`joint` retrieves from several shards for one call.

        `node` and `address` are the name and the address of a node that follows an assignment.
        Other nodes leave them empty. `is_starting` means that `expect` will name the shards on this
        disk; until then `report` fails.
        """
        self._joint = joint
        self._shards, self._node, self._address = list(shards), node, address
        self._hidden: list[ServedShard] = []
        """Shards that are not reported but still answer calls."""
        self._is_starting = is_starting
        self._expected: set[int] = set()
        """Numbers of shards on this disk that are not added yet."""

    def expect(self, shards: Iterable[int]) -> None:
        """Reports shards on this disk as loading until they are added.

        Other nodes would restore a snapshot of a shard that no node reports.
        """
        self._is_starting = False
        self._expected.update(shards)

    def add(self, shard: ServedShard, *, hidden: bool = False) -> None:
        """Adds a shard that answers calls; reports it to front nodes unless it is `hidden`."""
        (self._hidden if hidden else self._shards).append(shard)
        if shard.number is not None:
            self._expected.discard(shard.number)

    def hide(self, shard: ServedShard) -> None:
        """Stops reporting a shard, so that fronts send it no new calls.

        The shard still answers calls. If it fails, its fault is reported.
        """
        self._shards.remove(shard)
        self._hidden.append(shard)

    def show(self, shard: ServedShard) -> None:
        """Reports a hidden shard again."""
        self._hidden.remove(shard)
        self._shards.append(shard)

    def remove(self, shard: ServedShard) -> None:
        """Removes a shard: calls for it fail from now on."""
        for shards in (self._shards, self._hidden):
            if shard in shards:
                shards.remove(shard)

    def has_index(self, index_id: str) -> bool:
        """Whether a loaded shard belongs to an index."""
        return any(each.index_id == index_id for each in (*self._shards, *self._hidden))

    async def report(self, deadline: Deadline) -> NodeReport:
        """Returns the descriptions of the served shards, and the faults of the other shards.

        Raises UnavailableError while the node does not know its shards yet.
        """
        if self._is_starting:
            raise UnavailableError("the node is starting")
        infos, faults = [], []
        for each in self._shards:
            try:
                infos.append(await each.info(deadline))
            except LeavingError:
                raise
            except UnavailableError as error:
                faults.append(ShardFault(each.number, error))
        faults += [ShardFault(each.number, each.fault_error) for each in self._hidden if each.fault]
        faults += [ShardFault(each, UnavailableError(LOADING)) for each in sorted(self._expected)]
        return NodeReport(tuple(infos), tuple(faults), self._node, self._address)

    def searcher(self, shard: int | None) -> ServedShard:
        """Returns the shard with a number, or the node's only shard for None.

        Raises:
            IdentityError: `shard` is None, and the node serves no shard or several.
            UnavailableError: the node does not have the shard.

        """
        if shard is None:
            return self._only_shard()
        shards = [*self._shards, *self._hidden]
        if own := [each for each in shards if each.number == shard]:
            # a refused shard of another index may have the same number
            return min(own, key=lambda each: bool(each.fault))
        # a shard whose files cannot be read has no number; its fault is the reason
        unknown = [each for each in shards if each.number is None]
        if len(unknown) == 1:
            return unknown[0]
        raise UnavailableError(f"this node does not serve shard {shard}")

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> list[Retrieved | Exception]:
        """Retrieves from several shards: see `ContentNode`."""

        async def prepare(requested: RequestedShard) -> Retrieval:
            own = replace(depth, after=requested.after)
            return await self.searcher(requested.shard).prepare(question, own, deadline)

        work = [partial(prepare, each) for each in shards]
        return await self._joint.run(work, depth, deadline, question.client)

    def writing(self, shard: int | None) -> WritableShard:
        """Returns the writer of a shard; raises UnavailableError if the shard is not served."""
        return self.searcher(shard).writing

    def _only_shard(self) -> ServedShard:
        if len(self._shards) != 1:
            raise IdentityError(
                f"this node serves {len(self._shards)} shards, and the call names none of them: "
                "update the front node"
            )
        return self._shards[0]
