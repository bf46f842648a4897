"""Converts calls between front nodes and shards to messages of `shard.proto` and back."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from winnow.convert.arrays import float32_values
from winnow.convert.by_name import milliseconds, optional, same_fields, value_of_message
from winnow.convert.tokens import token_fields, tokens_of_fields
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit, Passage
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.reading import Reading
from winnow.domain.shard import MAX_FIELDS, MAX_SHARDS, NodeReport, ShardFault, ShardInfo
from winnow.domain.shard_call import Interval
from winnow.errors import NotLoadedError, UnavailableError, WinnowError, invalid_field
from winnow.rpc.status import error_of_bytes, error_to_bytes, public_node_message
from winnow.searcher import Read, Retrieved
from winnow.v1 import shard_pb2

_MAX_REASON = 600
"""Maximum number of characters of the reason why a shard is not served."""


def depth_of_message(
    message: shard_pb2.RetrieveRequest | shard_pb2.SearchRequest,
) -> RetrievalDepth:
    """Converts the retrieval depth of a request."""
    return RetrievalDepth(
        passages=message.passages,
        candidates=message.candidates,
        by_words=message.by_words,
        where=message.filter,
        after=message.after,
    )


def question_to_message(question: EncodedQuestion) -> shard_pb2.EncodedQuestion:
    """Converts a question; the vector becomes little-endian float32."""
    return shard_pb2.EncodedQuestion(
        text=question.text,
        token_ids=question.token_ids,
        vector=question.vector.astype("<f4", copy=False).tobytes(),
        bundle_fingerprint=question.bundle_fingerprint,
        rarities=question.rarities,
        mean_length=question.mean_length,
        tenant=question.tenant,
        **token_fields(question.tokens),
    )


def question_of_message(message: shard_pb2.EncodedQuestion) -> EncodedQuestion:
    """Converts a message to a question; raises InvalidRequestError if a value is invalid."""
    vector = float32_values(message.vector, "question.vector")
    if not np.isfinite(vector).all():
        raise invalid_field("question.vector", "every value must be finite")
    return EncodedQuestion(
        text=message.text,
        token_ids=tuple(message.token_ids),
        vector=vector,
        bundle_fingerprint=message.bundle_fingerprint,
        rarities=_rarities(message),
        mean_length=message.mean_length,
        tenant=message.tenant,
        tokens=tokens_of_fields(message.token_levels, message.token_weights, "question."),
    )


def _rarities(message: shard_pb2.EncodedQuestion) -> tuple[float, ...]:
    """Returns the rarities; raises InvalidRequestError unless there is one per token, or none."""
    rarities = tuple(message.rarities)
    if rarities and len(rarities) != len(message.token_ids):
        raise invalid_field(
            "question.rarities", f"{len(rarities)} values for {len(message.token_ids)} tokens"
        )
    usable = all(0 <= each < math.inf for each in (*rarities, message.mean_length))
    if not usable or (rarities and not message.mean_length):
        raise invalid_field(
            "question.rarities", "every value must be a finite number of at least 0"
        )
    return rarities


def hits_to_messages(hits: Iterable[Hit]) -> list[shard_pb2.Hit]:
    return [
        shard_pb2.Hit(
            row=h.row,
            passage_id=h.passage_id,
            distance=h.distance,
            hybrid_distance=h.hybrid_distance,
            words=h.words,
            sequence=h.sequence,
            late_interaction=h.late_interaction,
        )
        for h in hits
    ]


def hits_of_messages(messages: Iterable[shard_pb2.Hit], generation: str) -> tuple[Hit, ...]:
    """Converts the hits of a reply, whose own field has their common `generation`."""
    return tuple(
        Hit(
            row=m.row,
            passage_id=m.passage_id,
            distance=m.distance,
            hybrid_distance=m.hybrid_distance,
            generation=generation,
            words=m.words,
            sequence=m.sequence,
            late_interaction=m.late_interaction,
        )
        for m in messages
    )


def generation_of(hits: Sequence[Hit]) -> str:
    """Returns the generation of a shard's hits; empty without hits."""
    return hits[0].generation if hits else ""


def retrieved_to_message(retrieved: Retrieved) -> shard_pb2.RetrieveResponse:
    return shard_pb2.RetrieveResponse(
        hits=hits_to_messages(retrieved.hits),
        **milliseconds(retrieved.timings, "queue", "retrieve"),
        generation=generation_of(retrieved.hits),
        candidate_distances=retrieved.candidate_distances,
        idle_readers=retrieved.idle_readers,
        candidate_words=retrieved.candidate_words,
        sequence=retrieved.sequence,
        retrieve_start_ms=retrieved.retrieved.start * 1e3,
        passages=retrieved.passages,
        log_id=retrieved.log_id,
        late_interaction=retrieved.late_interaction,
        candidates_without_tokens=retrieved.timings.without_tokens,
    )


def retrieved_of_message(message: shard_pb2.RetrieveResponse) -> Retrieved:
    retrieve_seconds = message.retrieve_ms / 1e3
    # called for every shard of every question: helper functions would be too slow
    return Retrieved(
        hits_of_messages(message.hits, message.generation) if message.hits else (),
        tuple(message.candidate_distances),
        ShardTimings(
            message.queue_ms / 1e3,
            retrieve_seconds,
            without_tokens=message.candidates_without_tokens,
        ),
        idle_readers=message.idle_readers,
        candidate_words=tuple(message.candidate_words),
        sequence=message.sequence,
        retrieved=Interval(message.retrieve_start_ms / 1e3, retrieve_seconds),
        passages=message.passages if message.HasField("passages") else None,
        log_id=message.log_id,
        late_interaction=message.late_interaction,
    )


def result_to_message(result: Retrieved | WinnowError) -> shard_pb2.ShardResult:
    if isinstance(result, WinnowError):
        return shard_pb2.ShardResult(error=error_to_bytes(result))
    return shard_pb2.ShardResult(retrieved=retrieved_to_message(result))


def result_of_message(message: shard_pb2.ShardResult, address: str) -> Retrieved | WinnowError:
    """Converts the result of one shard; `address` is that of its node, for errors."""
    if message.HasField("retrieved"):
        return retrieved_of_message(message.retrieved)
    if not message.error:
        unknown = UnavailableError(f"{address}: sent neither a result nor an error for a shard")
        return unknown.with_public("a node sent an invalid reply")
    return error_of_bytes(message.error, address)


def read_to_message(read: Read) -> shard_pb2.ReadResponse:
    return shard_pb2.ReadResponse(
        readings=map(_reading_to_message, read.readings),
        **milliseconds(read.timings, "queue", "read"),
        unread=read.unread,
    )


def read_of_message(message: shard_pb2.ReadResponse) -> Read:
    timings = ShardTimings(queue=message.queue_ms / 1e3, read=message.read_ms / 1e3)
    return Read(tuple(map(_reading_of_message, message.readings)), timings, message.unread)


def read_to_search_response(read: Read) -> shard_pb2.SearchResponse:
    return shard_pb2.SearchResponse(
        readings=map(_reading_to_message, read.readings),
        **milliseconds(read.timings, "queue", "retrieve", "read"),
        unread=read.unread,
        sequence=read.sequence,
        retrieve_start_ms=read.retrieved.start * 1e3,
        passages=read.passages,
        log_id=read.log_id,
        candidates_without_tokens=read.timings.without_tokens,
    )


def read_of_search_response(message: shard_pb2.SearchResponse) -> Read:
    timings = ShardTimings(
        message.queue_ms / 1e3,
        message.retrieve_ms / 1e3,
        message.read_ms / 1e3,
        message.candidates_without_tokens,
    )
    return Read(
        tuple(map(_reading_of_message, message.readings)),
        timings,
        message.unread,
        sequence=message.sequence,
        retrieved=Interval(message.retrieve_start_ms / 1e3, message.retrieve_ms / 1e3),
        passages=optional(message, "passages"),
        log_id=message.log_id,
    )


def info_to_message(info: ShardInfo) -> shard_pb2.GetShardInfoResponse:
    return shard_pb2.GetShardInfoResponse(**same_fields(info))


def info_of_message(message: shard_pb2.GetShardInfoResponse) -> ShardInfo:
    return value_of_message(ShardInfo, message, fields=tuple(message.fields))


def report_to_message(report: NodeReport) -> shard_pb2.ListShardsResponse:
    """Converts a report. Shards mostly have equal metadata fields, so the names are sent once."""
    names = sorted({name for info in report.infos for name in info.fields})
    return shard_pb2.ListShardsResponse(
        shards=(
            shard_pb2.GetShardInfoResponse(**same_fields(info, excluded=("fields",)))
            for info in report.infos
        ),
        faults=map(_fault_to_message, report.faults),
        fields=names[:MAX_FIELDS],
        node=report.node,
        address=report.address,
    )


def _fault_to_message(fault: ShardFault) -> shard_pb2.ShardFault:
    # the reason may name a file, whose name need not be UTF-8
    reason = str(fault.error).encode(errors="backslashreplace").decode()[:_MAX_REASON]
    is_loading = not isinstance(fault.error, NotLoadedError)
    return shard_pb2.ShardFault(
        shard=fault.shard,
        reason=reason,
        is_loading=is_loading,
        is_unreachable=fault.is_unreachable,
    )


def _fault_of_message(message: shard_pb2.ShardFault, address: str) -> ShardFault:
    kind = UnavailableError if message.is_loading else NotLoadedError
    error = kind(f"{address}: {message.reason[:_MAX_REASON]}")
    public = public_node_message(error)
    shard = optional(message, "shard")
    return ShardFault(shard, error.with_public(public), message.is_unreachable)


def report_of_message(message: shard_pb2.ListShardsResponse, address: str) -> NodeReport:
    """Converts the report of the node at an address.

    Each shard gets the metadata fields of all shards of the node.

    Raises UnavailableError if the node reports more shards than an index can have.
    """
    if (shards := len(message.shards) + len(message.faults)) > 2 * MAX_SHARDS:
        raise UnavailableError(
            f"{address}: reports {shards:,} shards, but an index has at most {MAX_SHARDS:,}"
        ).with_public("a node sent an invalid reply")
    fields = tuple(message.fields)
    return NodeReport(
        tuple(value_of_message(ShardInfo, info, fields=fields) for info in message.shards),
        tuple(_fault_of_message(fault, address) for fault in message.faults),
        message.node,
        message.address,
    )


def index_report_to_message(report: NodeReport | WinnowError) -> shard_pb2.IndexShards:
    """Converts the report of one index, or its error."""
    if isinstance(report, WinnowError):
        return shard_pb2.IndexShards(error=error_to_bytes(report))
    return shard_pb2.IndexShards(shards=report_to_message(report))


def index_report_of_message(message: shard_pb2.IndexShards, address: str) -> NodeReport:
    """Converts the report of one index of the node at an address.

    Raises the error of the index, and as `report_of_message`.
    """
    if message.HasField("shards"):
        return report_of_message(message.shards, address)
    if not message.error:
        unknown = UnavailableError(f"{address}: sent neither shards nor an error for an index")
        raise unknown.with_public("a node sent an invalid reply")
    raise error_of_bytes(message.error, address)


def _reading_to_message(reading: Reading) -> shard_pb2.Reading:
    return shard_pb2.Reading(
        passage_id=reading.passage.id,
        title=reading.passage.title,
        text=reading.passage.text,
        metadata=reading.passage.metadata,
        start=reading.start,
        end=reading.end,
        score=reading.score,
        relevance=reading.relevance,
        span_score=reading.span_score,
        distance=reading.distance,
        hybrid_distance=reading.hybrid_distance,
        words=reading.words,
        late_interaction=reading.late_interaction,
        read_start_ms=reading.span.start * 1e3,
        read_ms=reading.span.seconds * 1e3,
    )


def _reading_of_message(message: shard_pb2.Reading) -> Reading:
    return Reading(
        passage=Passage(message.passage_id, message.title, message.text, message.metadata),
        start=message.start,
        end=message.end,
        score=message.score,
        relevance=message.relevance,
        span_score=message.span_score,
        distance=message.distance,
        hybrid_distance=message.hybrid_distance,
        words=message.words,
        late_interaction=message.late_interaction,
        span=Interval(message.read_start_ms / 1e3, message.read_ms / 1e3),
    )
