"""Converts writes to a shard to messages of `shard_feed.proto` and back.

Received writes are validated as far as possible without the shard, so that the shard can store
them and read them back.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from winnow.convert.arrays import VALUE_BYTES, float32_values, uint32_values
from winnow.convert.by_name import same_fields, value_of_message
from winnow.convert.feed import OUTCOME_BY_NUMBER, OUTCOMES
from winnow.convert.lazy import LazySequence
from winnow.domain.passage import Passage
from winnow.domain.quota import StorageQuota, TenantUsage
from winnow.domain.tenant import names_no_passage, own_id
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Deletion, EncodedPassage, FedPassage, Outcome, Write, Written
from winnow.errors import UnavailableError, Violation, invalid_field
from winnow.files.json_lines import json_type
from winnow.passages.canonical import PassageDigest
from winnow.passages.validation import deletion_violations, passage_violations
from winnow.v1 import shard_feed_pb2

_EMPTY_OBJECT = "{}"
"""Metadata without fields, as JSON."""
_NORM_TOLERANCE = 0.05
"""Maximum difference between a vector's norm and 1. Rounding causes a smaller one."""


def writes_to_messages(writes: Iterable[Write]) -> list[shard_feed_pb2.EncodedWrite]:
    return [_write_to_message(write) for write in writes]


def writes_of_messages(
    messages: Sequence[shard_feed_pb2.EncodedWrite], quota: StorageQuota | None = None
) -> Sequence[Write]:
    """Returns a sequence that converts and validates the writes on first use.

    The writes get `quota`. Use the sequence in a thread. Access raises InvalidRequestError if a
    write is invalid.
    """
    return LazySequence(
        len(messages),
        lambda: [_write_of_message(each, f"writes[{n}]", quota) for n, each in enumerate(messages)],
    )


def quota_of_message(message: shard_feed_pb2.WriteRequest) -> StorageQuota | None:
    """Returns the quota of a request; None if it has none."""
    return value_of_message(StorageQuota, message.quota) if message.HasField("quota") else None


def quota_to_message(quota: StorageQuota) -> shard_feed_pb2.StorageQuota:
    return shard_feed_pb2.StorageQuota(**same_fields(quota))


def written_to_message(written: Sequence[Written]) -> shard_feed_pb2.WriteResponse:
    """Converts the outcomes of writes."""
    usage = written[-1].usage if written else None
    return shard_feed_pb2.WriteResponse(
        written=map(_written_to_message, written),
        log_id=written[0].log_id if written else "",
        usage=None if usage is None else shard_feed_pb2.TenantUsage(**same_fields(usage)),
    )


def written_of_message(message: shard_feed_pb2.WriteResponse, expected: int) -> list[Written]:
    """Converts the outcomes of a call with `expected` writes.

    Raises UnavailableError if their number differs, or an outcome is unknown to this version.
    """
    outcomes = [OUTCOME_BY_NUMBER.get(each.outcome) for each in message.written]
    if len(outcomes) != expected or None in outcomes:
        raise UnavailableError(
            f"a shard reported {len(outcomes)} outcomes for {expected} writes, or an unknown "
            "outcome: does it run another version?"
        )
    usage = value_of_message(TenantUsage, message.usage) if message.HasField("usage") else None
    return [
        Written(outcome, each.sequence, message.log_id, usage)
        for outcome, each in zip(outcomes, message.written, strict=True)
        if outcome is not None
    ]


def digests_to_messages(puts: Iterable[PassageDigest]) -> list[shard_feed_pb2.PassageDigest]:
    return [shard_feed_pb2.PassageDigest(**same_fields(each)) for each in puts]


def digests_of_messages(messages: Iterable[shard_feed_pb2.PassageDigest]) -> list[PassageDigest]:
    return [value_of_message(PassageDigest, each) for each in messages]


def unchanged_to_message(
    unchanged: Sequence[Written | None],
) -> shard_feed_pb2.FindUnchangedResponse:
    """Converts the outcomes of puts. None stands for a put that would change the shard."""
    no_outcome = shard_feed_pb2.Written()
    return shard_feed_pb2.FindUnchangedResponse(
        results=[no_outcome if each is None else _written_to_message(each) for each in unchanged],
        log_id=next((each.log_id for each in unchanged if each is not None), ""),
    )


def unchanged_of_message(
    message: shard_feed_pb2.FindUnchangedResponse, expected: int
) -> list[Written | None]:
    """Converts the outcomes of a call with `expected` puts.

    None means that the put must be written; an unknown outcome also becomes None. Raises
    UnavailableError if the number of outcomes differs.
    """
    if len(message.results) != expected:
        raise UnavailableError(
            f"a shard reported {len(message.results)} outcomes for {expected} passages: does it "
            "run another version?"
        )
    unchanged_outcomes = (Outcome.UNCHANGED, Outcome.OUTDATED)
    outcomes = [OUTCOME_BY_NUMBER.get(each.outcome) for each in message.results]
    return [
        Written(outcome, each.sequence, message.log_id) if outcome in unchanged_outcomes else None
        for outcome, each in zip(outcomes, message.results, strict=True)
    ]


def counts_to_message(
    changes: WordChanges, built: WordCounts | None
) -> shard_feed_pb2.GetWordCountsResponse:
    """Converts the changes by writes, and the counts of the build if given."""
    message = shard_feed_pb2.GetWordCountsResponse(
        sequence=changes.sequence,
        changed_tokens=changes.ids.astype("<u4").tobytes(),
        changes=changes.by.astype("<i4").tobytes(),
        passages_change=changes.passages,
        tokens_change=changes.tokens,
    )
    if built is not None:
        message.built = built.passages.astype("<u4").tobytes()
        message.built_passages = built.total
        message.built_tokens = built.tokens
    return message


def changes_of_message(message: shard_feed_pb2.GetWordCountsResponse) -> WordChanges:
    """Converts the changes by writes; raises UnavailableError if the message is inconsistent."""
    ids, by = message.changed_tokens, message.changes
    if len(ids) % VALUE_BYTES or len(ids) != len(by):
        raise UnavailableError(
            f"a shard reported {len(ids)} bytes of token ids and {len(by)} bytes of changes: does "
            "it run another version?"
        )
    return WordChanges(
        sequence=message.sequence,
        ids=np.frombuffer(ids, "<u4").astype(np.uint32),
        by=np.frombuffer(by, "<i4").astype(np.int32),
        passages=message.passages_change,
        tokens=message.tokens_change,
    )


def built_of_message(message: shard_feed_pb2.GetWordCountsResponse) -> WordCounts:
    """Converts the counts of the build; raises UnavailableError if they are incomplete."""
    if len(message.built) % VALUE_BYTES:
        raise UnavailableError(
            f"a shard reported {len(message.built)} bytes of counts, which is not a multiple of "
            f"{VALUE_BYTES}: does it run another version?"
        )
    counts = np.frombuffer(message.built, "<u4").astype(np.uint32)
    return WordCounts(counts, message.built_tokens, message.built_passages)


def _written_to_message(written: Written) -> shard_feed_pb2.Written:
    return shard_feed_pb2.Written(outcome=OUTCOMES[written.outcome], sequence=written.sequence)


def _write_to_message(write: Write) -> shard_feed_pb2.EncodedWrite:
    if write.put is None:
        return shard_feed_pb2.EncodedWrite(id=write.id, version=write.version, delete=True)
    put = _put_to_message(write.put)
    return shard_feed_pb2.EncodedWrite(id=write.id, version=write.version, put=put)


def _put_to_message(put: EncodedPassage) -> shard_feed_pb2.EncodedPassage:
    passage = put.passage
    return shard_feed_pb2.EncodedPassage(
        title=passage.title,
        text=passage.text,
        metadata=passage.metadata,
        title_tokens=put.title_tokens,
        text_tokens=put.text_tokens,
        text_offsets=put.text_offsets,
        vector=put.vector,
        token_levels=put.token_levels,
        token_vectors_fingerprint=put.token_vectors_fingerprint,
    )


def _write_of_message(
    message: shard_feed_pb2.EncodedWrite, field: str, quota: StorageQuota | None
) -> Write:
    version = message.version if message.HasField("version") else None
    kind = message.WhichOneof("kind")
    if kind == "put":
        put = _put_of_message(message.id, version, message.put, f"{field}.put")
        return Write(message.id, version, put, quota)
    if kind != "delete" or not message.delete:
        raise invalid_field(field, "the write is neither a put nor a deletion")
    if not names_no_passage(message.id):
        _raise_first(field, deletion_violations(Deletion(own_id(message.id), version)))
    return Write(message.id, version, quota=quota)


def _put_of_message(
    identifier: str, version: int | None, message: shard_feed_pb2.EncodedPassage, field: str
) -> EncodedPassage:
    metadata = "" if message.metadata == _EMPTY_OBJECT else message.metadata
    fed = FedPassage(
        id=own_id(identifier),
        title=message.title,
        text=message.text,
        metadata=_metadata(metadata, field),
        version=version,
    )
    _raise_first(field, passage_violations(fed))
    uint32_values(message.title_tokens, f"{field}.title_tokens")
    ids = uint32_values(message.text_tokens, f"{field}.text_tokens")
    _check_offsets(message, len(ids), f"{field}.text_offsets")
    _check_vector(message.vector, f"{field}.vector")
    return EncodedPassage(
        passage=Passage(identifier, message.title, message.text, metadata),
        title_tokens=message.title_tokens,
        text_tokens=message.text_tokens,
        text_offsets=message.text_offsets,
        vector=message.vector,
        token_levels=message.token_levels,
        token_vectors_fingerprint=message.token_vectors_fingerprint,
    )


def _metadata(text: str, field: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise invalid_field(field, f"metadata is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise invalid_field(field, f"metadata is {json_type(value)}, expected an object")
    return value


def _raise_first(field: str, violations: Iterable[Violation]) -> None:
    for each in violations:
        raise invalid_field(f"{field}.{each.field}", each.description)


def _check_offsets(message: shard_feed_pb2.EncodedPassage, tokens: int, field: str) -> None:
    """Raises InvalidRequestError if the offsets do not ascend, or are beyond the text."""
    values = uint32_values(message.text_offsets, field)
    if len(values) != 2 * tokens:
        raise invalid_field(
            field, f"{len(values)} values for {tokens} tokens: expected two for each token"
        )
    starts, ends = values[::2], values[1::2]
    in_order = (starts[1:] >= starts[:-1]).all() and (ends[1:] >= ends[:-1]).all()
    if not in_order or (starts > ends).any() or ends.max(initial=0) > len(message.text):
        raise invalid_field(field, "the offsets do not ascend, or are beyond the text")


def _check_vector(data: bytes, field: str) -> None:
    """Raises InvalidRequestError if the vector's norm is not 1."""
    values = float32_values(data, field)
    norm = float(np.sqrt(np.square(values, dtype=np.float64).sum()))
    if not abs(norm - 1) <= _NORM_TOLERANCE:  # also true for NaN
        raise invalid_field(field, f"its norm is {norm:.4g}, but it must be 1")
