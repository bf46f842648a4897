"""What people who look after a cluster are told: domain values to messages of `cluster.proto`."""

from winnow.convert import head
from winnow.domain.cluster_state import FrontState, NodeState, ReplicaState, ShardState, Shown
from winnow.v1 import cluster_pb2

_STATES = {
    NodeState.SERVING: cluster_pb2.ReplicaState.STATE_SERVING,
    NodeState.OUT: cluster_pb2.ReplicaState.STATE_OUT,
    NodeState.LEAVING: cluster_pb2.ReplicaState.STATE_LEAVING,
    NodeState.UNREACHABLE: cluster_pb2.ReplicaState.STATE_UNREACHABLE,
    NodeState.NOT_LOADED: cluster_pb2.ReplicaState.STATE_NOT_LOADED,
    NodeState.REFUSED: cluster_pb2.ReplicaState.STATE_REFUSED,
}


def shown_to_message(shown: Shown) -> cluster_pb2.GetClusterResponse:
    """The reply to whoever looks."""
    return cluster_pb2.GetClusterResponse(
        front=_front_to_message(shown.front),
        index_id=shown.cluster.index_id,
        shards=map(_shard_to_message, shown.cluster.shards),
        strangers=map(_replica_to_message, shown.cluster.strangers),
        rings=map(head.encoder_group_to_message, shown.groups),
    )


def _front_to_message(front: FrontState) -> cluster_pb2.FrontState:
    return cluster_pb2.FrontState(
        version=front.version,
        bundle_name=front.bundle_name,
        bundle_fingerprint=front.bundle_fingerprint,
        up_seconds=front.up_seconds,
        answers=front.answers,
        feeds=front.feeds,
        questions_answered=front.questions_answered,
        questions_refused=front.questions_refused,
        questions_in_hand=front.questions_in_hand,
        reads_in_hand=front.reads_in_hand,
        texts_in_hand=front.texts_in_hand,
        passages_in_hand=front.passages_in_hand,
        seconds_per_read=front.seconds_per_read,
    )


def _shard_to_message(shard: ShardState) -> cluster_pb2.ShardState:
    return cluster_pb2.ShardState(
        shard=shard.shard,
        passages=shard.passages,
        sequence=shard.sequence,
        replicas=map(_replica_to_message, shard.replicas),
    )


def _replica_to_message(replica: ReplicaState) -> cluster_pb2.ReplicaState:
    return cluster_pb2.ReplicaState(
        address=replica.address,
        state=_STATES[replica.state],
        reason=replica.reason,
        calls_in_hand=replica.calls_in_hand,
        reads_in_hand=replica.reads_in_hand,
        seconds_per_read=replica.seconds_per_read,
        sequence=replica.sequence,
        lag=replica.lag,
        passages=replica.passages,
        generation=replica.generation,
        writable=replica.writable,
        heard_seconds=replica.heard_seconds,
    )
