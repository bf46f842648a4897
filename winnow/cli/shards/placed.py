"""Compares the shards that a front node reports with the assignment. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from winnow.cli.top.render import STATES
from winnow.domain.assignment import Assignment
from winnow.errors import UnavailableError, invalid_field
from winnow.v1.cluster_pb2 import GetClusterResponse, ReplicaState, ShardState

_FAULTY = (
    ReplicaState.STATE_NOT_LOADED,
    ReplicaState.STATE_UNREACHABLE,
    ReplicaState.STATE_LOADING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedShard:
    """A shard on a node: a row of `winnow shards`."""

    shard: int | None
    """Number of the shard; None for a node that runs without shards."""
    node: str
    """Name of the node; its address if it has no name."""
    address: str = ""
    """Address at which the front node calls the node; empty if it does not report the shard yet."""
    state: str
    """State as the front node reports it; `assigned` if the node does not report the shard yet."""
    is_assigned: bool
    """Whether the shard is assigned to the node; true if there is no assignment."""
    is_split: bool = False
    """Whether the shard is being split: its halves have other numbers."""
    passages: int = 0
    sequence: int = 0
    """Number of the last write."""
    lag: int = 0
    """Number of writes that another replica has and this one lacks."""
    reason: str = ""
    """Why the replica is not serving; empty if it is."""


class PlacedShards:
    """The nodes that hold each shard now, and the nodes to which each shard is assigned."""

    def __init__(self, cluster: GetClusterResponse, assignment: Assignment | None) -> None:
        self._cluster, self._assignment = cluster, assignment

    def rows(self) -> Iterator[PlacedShard]:
        """Yields a row for each shard on each of its nodes."""
        for shard in self._cluster.shards:
            wanted = self._wanted(shard.shard)
            for replica in shard.replicas:
                node = replica.node or replica.address
                yield PlacedShard(
                    shard=shard.shard,
                    node=node,
                    address=replica.address,
                    state=STATES.get(replica.state, ("unknown", ""))[0],
                    is_assigned=wanted is None or node in wanted,
                    is_split=bool(self._parts(shard.shard)),
                    passages=replica.passages,
                    sequence=replica.sequence,
                    lag=replica.lag,
                    reason=replica.reason,
                )
            reported = {replica.node for replica in shard.replicas}
            for node in sorted(set(wanted or ()) - reported):
                yield PlacedShard(shard=shard.shard, node=node, state="assigned", is_assigned=True)
        for number in self._halves_not_served():
            for node in self._wanted(number) or ():
                yield PlacedShard(shard=number, node=node, state="assigned", is_assigned=True)
        with_shards = {each.address for shard in self._cluster.shards for each in shard.replicas}
        for each in self._cluster.strangers:
            # for example, a node that cannot create a half of a shard
            is_faulty = bool(each.reason) and each.state in _FAULTY
            if is_faulty or each.address not in with_shards:
                yield PlacedShard(
                    shard=None,
                    node=each.node or each.address,
                    address=each.address,
                    state=STATES.get(each.state, ("unknown", ""))[0],
                    is_assigned=False,
                    reason=each.reason,
                )

    def nodes(self) -> dict[str, str]:
        """The addresses of all nodes that reply and follow an assignment, by name.

        Raises UnavailableError if two nodes have one name.
        """
        replicas = [each for shard in self._cluster.shards for each in shard.replicas]
        unreachable = (ReplicaState.STATE_UNREACHABLE, ReplicaState.STATE_LEAVING)
        addresses: dict[str, str] = {}
        for each in sorted((*replicas, *self._cluster.strangers), key=lambda each: each.node):
            if not each.node or each.state in unreachable:
                continue
            if (first := addresses.setdefault(each.node, each.node_address)) != each.node_address:
                raise UnavailableError(
                    f"two nodes are named {each.node} ({first}, {each.node_address}): stop one, "
                    "and start it with another --name"
                )
        return addresses

    def moving(self) -> dict[int, str]:
        """Describes each shard that is being split, or is not yet on exactly its assigned nodes.

        A shard that no node serves counts only while a node loads it. Otherwise its node is down.
        """
        moving: dict[int, str] = {}
        for shard in self._cluster.shards:
            wanted, serving = self._wanted(shard.shard), _serving(shard)
            if serving and (parts := self._parts(shard.shard)):
                moving[shard.shard] = f"is being split into {', '.join(map(str, parts))}"
                continue
            if wanted is not None and not serving and _is_loading(shard):
                moving[shard.shard] = "is loaded"
            if wanted is not None and serving and set(wanted) != serving:
                moving[shard.shard] = f"{', '.join(sorted(serving))} -> {', '.join(wanted)}"
        return moving

    def serves(self, node: str, shard: int) -> bool:
        """Whether a node serves a shard now."""
        return any(node in _serving(each) for each in self._cluster.shards if each.shard == shard)

    def present(self) -> Assignment:
        """The present assignment, or a first one that leaves all shards where they are.

        Raises UnavailableError if no index is served, or a shard is on no node with a name. Raises
        InvalidRequestError if the assignment is of another index.
        """
        index_id, shards = self._cluster.index_id, self._cluster.shards
        if not index_id:
            raise UnavailableError("the front node serves no index yet: try again")
        if self._assignment is not None:
            if self._assignment.index_id != index_id:
                description = (
                    f"it is of index {self._assignment.index_id}, but the front node serves index "
                    f"{index_id}: give the assignment of the served index with --assignment"
                )
                raise invalid_field("assignment", description)
            return self._assignment
        holders: Mapping[int, tuple[str, ...]] = {
            shard.shard: tuple(sorted(_serving(shard))) for shard in shards
        }
        nodes = self.nodes()
        for shard, names in holders.items():
            if not names or not set(names) <= nodes.keys():
                raise UnavailableError(
                    f"no node that follows an assignment serves shard {shard}: start the node that "
                    "has this shard with --assignment FILE, and with --data DIRECTORY, the "
                    "directory of its shards"
                )
        built = self._cluster.built_shards or len(shards)
        return Assignment(index_id=index_id, shards=built, version=0, nodes=nodes, holders=holders)

    def _parts(self, shard: int) -> list[int]:
        """The shards into which the assignment splits a served shard; empty if it does not."""
        if self._wanted(shard) is None or self._assignment is None:
            return []
        parts = self._assignment.partition.parts_of(shard)
        return [] if parts == [shard] else parts

    def _halves_not_served(self) -> list[int]:
        """The assigned shards that the front node does not report yet."""
        if self._assignment is None or self._assignment.index_id != self._cluster.index_id:
            return []
        served = {shard.shard for shard in self._cluster.shards}
        return sorted(self._assignment.holders.keys() - served)

    def _wanted(self, shard: int) -> tuple[str, ...] | None:
        """The names of the nodes that a shard is assigned to; None without an assignment."""
        if self._assignment is None or self._assignment.index_id != self._cluster.index_id:
            return None
        return self._assignment.holders.get(shard, ())


def _is_loading(shard: ShardState) -> bool:
    """Whether a node loads a shard."""
    return any(each.state == ReplicaState.STATE_LOADING for each in shard.replicas)


def _serving(shard: ShardState) -> set[str]:
    """The names of the nodes that serve a shard."""
    return {
        replica.node or replica.address
        for replica in shard.replicas
        if replica.state in (ReplicaState.STATE_SERVING, ReplicaState.STATE_OUT)
    }
