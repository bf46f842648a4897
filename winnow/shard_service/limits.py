"""Limits of the calls that front nodes send to shards."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from winnow.domain.listing import MAX_LOOKUP_IDS
from winnow.domain.passage import Hit
from winnow.domain.question import RetrievalDepth
from winnow.errors import invalid_field
from winnow.filtering import MAX_CANONICAL, parse
from winnow.searcher import MAX_CALL_SHARDS, MAX_POLLED_INDEXES

MAX_PASSAGES = 1_000
MAX_ANSWER_TOKENS = 256


def check_passages(count: int, field: str = "passages") -> None:
    """Refuses a number of passages that is out of range. `field` is its name in the request.

    Like every check here, raises InvalidRequestError.
    """
    if not 1 <= count <= MAX_PASSAGES:
        raise invalid_field(field, f"{count} is not between 1 and {MAX_PASSAGES}")


def check_ids(count: int) -> None:
    """Refuses a number of passage ids that is out of range."""
    if not 1 <= count <= MAX_LOOKUP_IDS:
        raise invalid_field("ids", f"{count} is not between 1 and {MAX_LOOKUP_IDS}")


def check_indexes(index_ids: Sequence[str]) -> None:
    """Refuses too many indexes in one poll."""
    if len(index_ids) > MAX_POLLED_INDEXES:
        raise invalid_field("index_ids", f"{len(index_ids)} is more than {MAX_POLLED_INDEXES}")


def check_shards(shards: Sequence[int]) -> None:
    """Refuses too many or no shards in one call, and repeated shards.

    If a shard were repeated, its hits would compete with themselves for the best passages.
    """
    if not 1 <= len(shards) <= MAX_CALL_SHARDS:
        raise invalid_field("shards", f"{len(shards)} is not between 1 and {MAX_CALL_SHARDS}")
    if repeated := [shard for shard, count in Counter(shards).items() if count > 1]:
        raise invalid_field("shards", f"shard {repeated[0]} occurs twice")


def check_filter(where: str) -> None:
    """Refuses an invalid filter; an empty one is valid."""
    if where:
        parse(where, MAX_CANONICAL)


def check_depth(depth: RetrievalDepth) -> None:
    """Refuses an invalid filter, and numbers of passages or candidates that are out of range."""
    check_passages(depth.passages)
    check_filter(depth.where)
    for field in ("candidates", "by_words"):
        if (count := getattr(depth, field)) > MAX_PASSAGES:
            raise invalid_field(field, f"{count} is more than {MAX_PASSAGES}")


def check_hits(hits: Iterable[Hit]) -> None:
    """Refuses hits that no retrieval returns: repeated rows, impossible distances or scores."""
    rows = set()
    for index, hit in enumerate(hits):
        if hit.row in rows:
            raise invalid_field(f"hits[{index}].row", f"row {hit.row} occurs twice")
        rows.add(hit.row)
        if not 0 <= hit.distance < math.inf:
            raise invalid_field(
                f"hits[{index}].distance", f"must be 0 or more and finite, not {hit.distance}"
            )
        if not math.isfinite(hit.hybrid_distance):
            raise invalid_field(
                f"hits[{index}].hybrid_distance", f"must be finite, not {hit.hybrid_distance}"
            )
        if not 0 <= hit.words < math.inf:
            raise invalid_field(
                f"hits[{index}].words", f"must be 0 or more and finite, not {hit.words}"
            )


def check_answer_tokens(tokens: int) -> None:
    """Refuses a maximum answer length that is out of range."""
    if not 1 <= tokens <= MAX_ANSWER_TOKENS:
        raise invalid_field(
            "max_answer_tokens", f"{tokens} is not between 1 and {MAX_ANSWER_TOKENS}"
        )
