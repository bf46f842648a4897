"""Weighs the words of a tenant's question by the passages in all parts of its split shard.

A shard weighs the words of a tenant by its own passages, and a tenant is on one shard. If that was
split, the front first asks each part for its counts, and adds them up. So scores are those of a
shard that was not split. The calls take another round trip.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import structlog

from winnow.deadline import Deadline
from winnow.domain.listing import TenantWordCounts, TenantWordsRequest
from winnow.domain.question import EncodedQuestion
from winnow.errors import WinnowError
from winnow.searcher import Searcher
from winnow.text.rarity import mean_length, rarities

_TIME_SHARE = 0.25
"""Share of the time left that the calls may take."""
_log = structlog.get_logger("stateless.words.parts")


async def weigh_by_parts(
    question: EncodedQuestion,
    searchers: Mapping[int, Searcher],
    required_writes: Mapping[int, int],
    deadline: Deadline,
) -> EncodedQuestion:
    """Returns the question with the rarity of each of its tokens, if several shards are searched.

    Returns it unchanged if it has no tenant, if one shard has the whole tenant, or if a part does
    not reply in time: then each part weighs words by its own passages.

    Args:
        question: a question without rarities.
        searchers: the shards that may hold passages of the tenant.
        required_writes: the write that each shard must have; see `Cluster.required_writes`.
        deadline: deadline of the whole question.

    """
    if not question.tenant or len(searchers) == 1 or not question.token_ids:
        return question
    ids, places = np.unique(np.array(question.token_ids, np.int64), return_inverse=True)
    soon = deadline.earlier(deadline.left() * (1 - _TIME_SHARE))
    wanted = TenantWordsRequest(
        token_ids=tuple(ids.tolist()), tenant=question.tenant, client=question.client
    )
    calls = (
        searcher.passages.fetch(replace(wanted, after=required_writes.get(shard, 0)), soon)
        for shard, searcher in searchers.items()
    )
    try:
        counts: list[TenantWordCounts] = await asyncio.gather(*calls)
    except WinnowError as error:
        _log.warning("words of a split shard weighed by its parts", reason=str(error))
        return question
    if any(len(each.containing) != len(ids) for each in counts):
        return question  # a node of another version
    passages = sum(each.passages for each in counts)
    containing = np.array([each.containing for each in counts], np.int64).sum(axis=0)
    weights = rarities(containing, passages)[places]
    length = mean_length(sum(each.tokens for each in counts), passages)
    return replace(question, rarities=tuple(weights.tolist()), mean_length=length)
