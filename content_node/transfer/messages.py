"""Converts writes of a log to messages of `shard_transfer.proto` and back."""

from collections.abc import Iterable, Sequence

from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.transfer.following import LogBatch
from winnow.convert.by_name import optional
from winnow.convert.shard_feed import writes_of_messages, writes_to_messages
from winnow.domain.write import Write
from winnow.v1 import shard_transfer_pb2


def batch_to_message(batch: LogBatch) -> shard_transfer_pb2.ReadLogResponse:
    return shard_transfer_pb2.ReadLogResponse(
        log_id=batch.log_id,
        writes=_logged_to_messages(batch.writes),
        last=batch.last,
        is_trimmed=batch.is_trimmed,
        takes_writes=batch.takes_writes,
    )


def batch_of_message(message: shard_transfer_pb2.ReadLogResponse) -> LogBatch:
    """Converts a batch; use a thread. Raises InvalidRequestError if a write is invalid."""
    writes = writes_of_messages([each.write for each in message.writes])
    return LogBatch(
        log_id=message.log_id,
        writes=[
            LoggedWrite(
                sequence=each.sequence,
                id=write.id,
                version=write.version,
                put=write.put,
                removed_words=optional(each, "removed_words"),
            )
            for each, write in zip(message.writes, writes, strict=True)
        ],
        last=message.last,
        is_trimmed=message.is_trimmed,
        takes_writes=message.takes_writes,
    )


def _logged_to_messages(writes: Sequence[LoggedWrite]) -> Iterable[shard_transfer_pb2.LoggedWrite]:
    plain = (Write(each.id, each.version, each.put) for each in writes)
    for each, message in zip(writes, writes_to_messages(plain), strict=True):
        yield shard_transfer_pb2.LoggedWrite(
            sequence=each.sequence, write=message, removed_words=each.removed_words
        )
