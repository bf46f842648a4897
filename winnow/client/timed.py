"""Timings of the answer service to plain values."""

from winnow.client.timings import ReadTiming, ShardCall, ShardTimings, Timings
from winnow.domain.shard_call import CallKind, CallOutcome
from winnow.v1 import answer_pb2

_KINDS = {
    answer_pb2.ShardCall.KIND_RETRIEVE: CallKind.RETRIEVE,
    answer_pb2.ShardCall.KIND_READ: CallKind.READ,
    answer_pb2.ShardCall.KIND_SEARCH: CallKind.SEARCH,
}
_OUTCOMES = {
    answer_pb2.ShardCall.OUTCOME_ANSWERED: CallOutcome.ANSWERED,
    answer_pb2.ShardCall.OUTCOME_FAILED: CallOutcome.FAILED,
    answer_pb2.ShardCall.OUTCOME_ABANDONED: CallOutcome.ABANDONED,
}


def timings_of(message: answer_pb2.Timings) -> Timings:
    """All that a front node says of its time."""
    return Timings(
        queue_ms=message.queue_ms,
        tokenise_ms=message.tokenise_ms,
        encode_ms=message.encode_ms,
        retrieve_ms=message.retrieve_ms,
        read_ms=message.read_ms,
        merge_ms=message.merge_ms,
        total_ms=message.total_ms,
        shards=tuple(
            ShardTimings(part.shard, part.queue_ms, part.retrieve_ms, part.read_ms)
            for part in message.shards
        ),
        retrieve_start_ms=message.retrieve_start_ms,
        read_start_ms=message.read_start_ms,
        merge_start_ms=message.merge_start_ms,
        calls=tuple(map(_call, message.calls)),
    )


def _call(message: answer_pb2.ShardCall) -> ShardCall:
    return ShardCall(
        message.shard,
        _KINDS.get(message.kind),
        _OUTCOMES.get(message.outcome),
        message.start_ms,
        message.ms,
        message.retrieve_start_ms,
        message.retrieve_ms,
        tuple(ReadTiming(each.passage_id, each.start_ms, each.ms) for each in message.reads),
    )
