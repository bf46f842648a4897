"""Searches over fake shards."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fakes import ENCODED, FakeSearcher
from tenacious import LONG

from winnow.deadline import Deadline
from winnow.domain.answered import Timings
from winnow.domain.question import Question, ReadScope, Retriever
from winnow.domain.stopping import StoppingRule
from winnow.stateless.answer.calls import SearchLimits, ShardCalls
from winnow.stateless.answer.search import search
from winnow.stateless.answer.search_result import SearchResult

LIMITS = SearchLimits(merge_reserve=0.02, retrieve_share=0.4)


def question(scope: ReadScope, passages: int = 2, **options: Any) -> Question:
    return Question(
        text="who",
        passages_to_read=passages,
        answers=3,
        read_scope=scope,
        retriever=Retriever.DENSE,
        max_answer_tokens=10,
        **options,
    )


async def find(
    shards: Sequence[FakeSearcher],
    asked: Question,
    rule: StoppingRule | None = None,
    deadline: Deadline | None = None,
    limits: SearchLimits = LIMITS,
    timings: Timings | None = None,
) -> SearchResult:
    """Searches the shards; fails after `LONG` seconds."""
    until = deadline or Deadline.after(LONG)
    calls = ShardCalls(dict(enumerate(shards)), asked, ENCODED, until, limits=limits)
    return await asyncio.wait_for(search(calls, lambda _: rule, timings or Timings()), LONG)


def passages(found: SearchResult) -> set[str]:
    """Returns the ids of all passages that were read."""
    return {reading.passage.id for own in found.readings.values() for reading in own}
