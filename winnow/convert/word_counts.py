"""Counts of words, between front nodes and shards: values to messages and back."""

import numpy as np
from numpy.typing import DTypeLike, NDArray

from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.errors import WinnowError
from winnow.v1 import shard_feed_pb2


def counts_to_message(
    changes: WordChanges, built: WordCounts | None = None
) -> shard_feed_pb2.GetWordCountsResponse:
    """What writes changed; with what was `built` if that was asked for, too."""
    message = shard_feed_pb2.GetWordCountsResponse(
        sequence=changes.sequence,
        changed_tokens=changes.ids.astype("<u4", copy=False).tobytes(),
        changes=changes.by.astype("<i4", copy=False).tobytes(),
        passages_change=changes.passages,
        tokens_change=changes.tokens,
    )
    if built is not None:
        message.built = built.passages.astype("<u4", copy=False).tobytes()
        message.built_passages, message.built_tokens = built.total, built.tokens
    return message


def built_of_message(message: shard_feed_pb2.GetWordCountsResponse) -> WordCounts:
    """The counts of the index as it was built.

    Raises:
        WinnowError: it is no row of counts, or a token is in more passages than there are.

    """
    containing = _numbers(message.built, "<u4", "built")
    if containing.max(initial=0) > message.built_passages:
        raise WinnowError(
            f"a token is in {containing.max()} of {message.built_passages} passages of the index "
            "as it was built: start the node with an index that is whole"
        )
    return WordCounts(
        containing.astype(np.uint32, copy=False), message.built_tokens, message.built_passages
    )


def changes_of_message(message: shard_feed_pb2.GetWordCountsResponse) -> WordChanges:
    """What writes changed.

    Raises:
        WinnowError: the tokens are not in order, or there is not one change for each.

    """
    ids = _numbers(message.changed_tokens, "<u4", "changed_tokens")
    by = _numbers(message.changes, "<i4", "changes")
    if len(ids) != len(by):
        raise WinnowError(f"{len(by)} changes of counts came for {len(ids)} tokens")
    if (ids[1:] <= ids[:-1]).any():
        raise WinnowError("tokens whose counts changed came in no order")
    return WordChanges(
        message.sequence,
        ids.astype(np.uint32, copy=False),
        by.astype(np.int32, copy=False),
        message.passages_change,
        message.tokens_change,
    )


def _numbers(packed: bytes, kind: DTypeLike, field: str) -> NDArray[np.integer]:
    if len(packed) % 4:
        raise WinnowError(f"{field}: {len(packed)} bytes are no integers of four bytes each")
    numbers: NDArray[np.integer] = np.frombuffer(packed, kind)
    return numbers
