"""Writes to a shard: domain values to messages of `shard_feed.proto` and back.

What arrives is checked as far as it can be without knowing the shard: it can be stored and read.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.convert.by_name import same_fields, value_of_message
from winnow.convert.feed import OUTCOMES, OUTCOMES_BACK
from winnow.convert.lazy import LazySequence
from winnow.domain.passage import Passage
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Deletion, EncodedPassage, FedPassage, Outcome, Write, Written
from winnow.errors import InvalidRequestError, UnavailableError, Violation
from winnow.files.json_lines import json_type
from winnow.passages.canonical import PassageDigest
from winnow.passages.validation import deletion_violations, passage_violations
from winnow.v1 import shard_feed_pb2

_NONE = "{}"
"""Empty metadata."""
_NORM = 0.05
"""The greatest distance of a vector's norm from one: more than lower precision causes."""
_BYTES = 4
"""Bytes of a token, and of a value of a vector."""


def writes_to_messages(writes: Iterable[Write]) -> list[shard_feed_pb2.EncodedWrite]:
    """Writes as they travel."""
    return [_to_message(write) for write in writes]


def writes_of_messages(messages: Sequence[shard_feed_pb2.EncodedWrite]) -> Sequence[Write]:
    """Writes as they arrived. Read them in a thread: they are converted and checked there.

    Reading raises:
        InvalidRequestError: one of them cannot have been made of a passage.

    """
    return LazySequence(
        len(messages), lambda: [_write(each, f"writes[{n}]") for n, each in enumerate(messages)]
    )


def written_to_message(written: Sequence[Written]) -> shard_feed_pb2.WriteResponse:
    """What became of writes."""
    return shard_feed_pb2.WriteResponse(
        written=map(_written_to_message, written), log_id=written[0].log_id if written else ""
    )


def written_of_message(message: shard_feed_pb2.WriteResponse, expected: int) -> list[Written]:
    """What became of the `expected` writes of a call. Raises UnavailableError if the shard says
    something else, as one of another version may.
    """
    outcomes = [OUTCOMES_BACK.get(each.outcome) for each in message.written]
    if len(outcomes) != expected or None in outcomes:
        raise UnavailableError(
            f"a shard told of {len(outcomes)} writes, not of {expected}, or of an unknown outcome: "
            "is it of another version?"
        )
    return [
        Written(outcome, each.sequence, message.log_id)
        for outcome, each in zip(outcomes, message.written, strict=True)
        if outcome is not None
    ]


def digests_to_messages(puts: Iterable[PassageDigest]) -> list[shard_feed_pb2.PassageDigest]:
    return [shard_feed_pb2.PassageDigest(**same_fields(each)) for each in puts]


def digests_of_messages(messages: Iterable[shard_feed_pb2.PassageDigest]) -> list[PassageDigest]:
    return [value_of_message(PassageDigest, each) for each in messages]


def unchanged_to_message(found: Sequence[Written | None]) -> shard_feed_pb2.FindUnchangedResponse:
    """What becomes of puts that change nothing."""
    nothing = shard_feed_pb2.Written()
    return shard_feed_pb2.FindUnchangedResponse(
        results=[nothing if each is None else _written_to_message(each) for each in found],
        log_id=next((each.log_id for each in found if each is not None), ""),
    )


def unchanged_of_message(
    message: shard_feed_pb2.FindUnchangedResponse, expected: int
) -> list[Written | None]:
    """What becomes of the `expected` puts of a call; one of an unknown outcome has to be written.
    Raises UnavailableError if the shard tells of another number of puts.
    """
    if len(message.results) != expected:
        raise UnavailableError(
            f"a shard told of {len(message.results)} passages, not of {expected}: is it of another "
            "version?"
        )
    needless = (Outcome.UNCHANGED, Outcome.OUTDATED)
    outcomes = [OUTCOMES_BACK.get(each.outcome) for each in message.results]
    return [
        Written(outcome, each.sequence, message.log_id) if outcome in needless else None
        for outcome, each in zip(outcomes, message.results, strict=True)
    ]


def counts_to_message(
    changes: WordChanges, built: WordCounts | None
) -> shard_feed_pb2.GetWordCountsResponse:
    """What writes changed, and what was counted when the index was built, unless it is known."""
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
    """What writes to a shard changed; raises UnavailableError if that contradicts itself."""
    ids, by = message.changed_tokens, message.changes
    if len(ids) % _BYTES or len(ids) != len(by):
        raise UnavailableError(
            f"a shard told of {len(ids)} bytes of tokens and {len(by)} of changes: is it of "
            "another version?"
        )
    return WordChanges(
        sequence=message.sequence,
        ids=np.frombuffer(ids, "<u4").astype(np.uint32),
        by=np.frombuffer(by, "<i4").astype(np.int32),
        passages=message.passages_change,
        tokens=message.tokens_change,
    )


def built_of_message(message: shard_feed_pb2.GetWordCountsResponse) -> WordCounts:
    """What was counted when the index was built; raises UnavailableError if it is cut off."""
    if len(message.built) % _BYTES:
        raise UnavailableError(
            f"a shard told of {len(message.built)} bytes of counts: is it of another version?"
        )
    counts = np.frombuffer(message.built, "<u4").astype(np.uint32)
    return WordCounts(counts, message.built_tokens, message.built_passages)


def _written_to_message(written: Written) -> shard_feed_pb2.Written:
    return shard_feed_pb2.Written(outcome=OUTCOMES[written.outcome], sequence=written.sequence)


def _to_message(write: Write) -> shard_feed_pb2.EncodedWrite:
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
    )


def _write(message: shard_feed_pb2.EncodedWrite, field: str) -> Write:
    version = message.version if message.HasField("version") else None
    kind = message.WhichOneof("kind")
    if kind == "put":
        put = _put(message.id, version, message.put, f"{field}.put")
        return Write(message.id, version, put)
    if kind != "delete" or not message.delete:
        raise _wrong(field, "it neither puts nor deletes")
    _refuse(field, deletion_violations(Deletion(message.id, version)))
    return Write(message.id, version)


def _put(
    identifier: str, version: int | None, message: shard_feed_pb2.EncodedPassage, field: str
) -> EncodedPassage:
    metadata = "" if message.metadata == _NONE else message.metadata
    fed = FedPassage(
        id=identifier,
        title=message.title,
        text=message.text,
        metadata=_metadata(metadata, field),
        version=version,
    )
    _refuse(field, passage_violations(fed))
    _tokens(message.title_tokens, f"{field}.title_tokens")
    ids = _tokens(message.text_tokens, f"{field}.text_tokens")
    _check_offsets(message, len(ids), f"{field}.text_offsets")
    _check_vector(message.vector, f"{field}.vector")
    return EncodedPassage(
        passage=Passage(identifier, message.title, message.text, metadata),
        title_tokens=message.title_tokens,
        text_tokens=message.text_tokens,
        text_offsets=message.text_offsets,
        vector=message.vector,
    )


def _metadata(text: str, field: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise _wrong(field, f"metadata is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise _wrong(field, f"metadata is {json_type(value)}, expected an object")
    return value


def _refuse(field: str, violations: Iterable[Violation]) -> None:
    for each in violations:
        raise _wrong(f"{field}.{each.field}", each.description)


def _tokens(data: bytes, field: str) -> NDArray[np.uint32]:
    if len(data) % _BYTES:
        raise _wrong(field, f"{len(data)} bytes are no uint32 values")
    return np.frombuffer(data, "<u4")


def _check_offsets(message: shard_feed_pb2.EncodedPassage, tokens: int, field: str) -> None:
    """Refuses offsets that do not ascend, or lie outside of the text."""
    values = _tokens(message.text_offsets, field)
    if len(values) != 2 * tokens:
        raise _wrong(field, f"{len(values)} values for {tokens} tokens, not two for each")
    starts, ends = values[::2], values[1::2]
    in_order = (starts[1:] >= starts[:-1]).all() and (ends[1:] >= ends[:-1]).all()
    if not in_order or (starts > ends).any() or ends.max(initial=0) > len(message.text):
        raise _wrong(field, "they do not ascend, or lead out of the text")


def _check_vector(data: bytes, field: str) -> None:
    """Refuses a vector whose norm is not one."""
    if len(data) % _BYTES:
        raise _wrong(field, f"{len(data)} bytes is not a multiple of 4: expected float32 values")
    norm = float(np.sqrt(np.square(np.frombuffer(data, "<f4"), dtype=np.float64).sum()))
    if not abs(norm - 1) <= _NORM:  # also refuses values that are no numbers
        raise _wrong(field, f"its norm is {norm:.4g}, it must be 1")


def _wrong(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(field, description))
