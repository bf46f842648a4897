"""Converts the state of a cluster to messages of `cluster.proto`, for operators."""

from winnow.convert import head
from winnow.convert.by_name import numbers_of, same_fields
from winnow.domain.cluster_state import ClusterReport, NodeState, ReplicaState, ShardState
from winnow.v1 import cluster_pb2

_STATES = numbers_of(NodeState, cluster_pb2.ReplicaState.State, "STATE_")


def report_to_message(shown: ClusterReport) -> cluster_pb2.GetClusterResponse:
    """Converts a front node's report about itself and its cluster."""
    return cluster_pb2.GetClusterResponse(
        front=cluster_pb2.FrontState(**same_fields(shown.front)),
        index_id=shown.cluster.index_id,
        shards=map(_shard_to_message, shown.cluster.shards),
        strangers=map(_replica_to_message, shown.cluster.strangers),
        built_shards=shown.cluster.built_shards,
        rings=map(head.encoder_group_to_message, shown.groups),
    )


def _shard_to_message(shard: ShardState) -> cluster_pb2.ShardState:
    replicas = map(_replica_to_message, shard.replicas)
    return cluster_pb2.ShardState(**same_fields(shard, ("replicas",)), replicas=replicas)


def _replica_to_message(replica: ReplicaState) -> cluster_pb2.ReplicaState:
    state = _STATES[replica.state]
    return cluster_pb2.ReplicaState(**same_fields(replica, ("state",)), state=state)
