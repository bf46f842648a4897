"""Scores of a tenant in a split shard: those of one shard with all its passages."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from shards_made import in_memory, passages, question, stored

from winnow.content_node.passages.tenants import count_words
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.content_node.shard.view import PlacedSegment, ShardView, view_of
from winnow.deadline import Deadline
from winnow.domain.listing import Seen, ShardRequest, TenantWordsRequest
from winnow.domain.question import RetrievalDepth
from winnow.domain.tenant import stored_id
from winnow.domain.write import EncodedPassage
from winnow.errors import UnavailableError, WinnowError
from winnow.inference.stop_signal import StopSignal
from winnow.stateless.words.parts import weigh_by_parts

DEPTH = RetrievalDepth(passages=200, candidates=200, by_words=200)


def owned() -> list[EncodedPassage]:
    return [
        replace(
            each,
            passage=replace(each.passage, id=stored_id(("acme", "b")[number % 2], f"p{number}")),
        )
        for number, each in enumerate(passages(200))
    ]


def view_with_writes(directory: Path, own: list[EncodedPassage]) -> ShardView:
    """Returns a view of a stored segment and of one in memory."""
    half = len(own) // 2
    view = view_of(stored(directory, own[:half]))
    later = PlacedSegment(in_memory(own[half:]), half)
    return replace(view, segments=(view.segments[0], later), passages=len(own))


@dataclass
class Part:
    """A searcher of a shard that only counts words."""

    view: ShardView
    fails: WinnowError | None = None
    calls: int = 0

    @property
    def passages(self) -> "Part":
        return self

    async def fetch(self, request: ShardRequest[Seen], deadline: Deadline) -> Seen:
        assert isinstance(request, TenantWordsRequest)
        assert deadline.left() < 5
        self.calls += 1
        if self.fails is not None:
            raise self.fails
        counts: Any = count_words(view_of_tenant(self.view, request.tenant), request, StopSignal())
        result: Seen = counts
        return result


@pytest.fixture
def parts(tmp_path: Path) -> dict[int, Any]:
    """Two parts of different size."""
    own = owned()
    return {
        1: Part(view_with_writes(tmp_path / "first", own[:60])),
        2: Part(view_with_writes(tmp_path / "second", own[60:])),
    }


def scores(view: ShardView, asked: Any) -> dict[str, tuple[float, float]]:
    hits = retrieve(view_of_tenant(view, asked.tenant), asked, DEPTH, 0.5).hits
    return {each.passage_id: (each.words, each.hybrid_distance) for each in hits}


async def test_scores_over_the_parts_of_a_shard_are_those_of_the_whole_shard(
    parts: dict[int, Any], tmp_path: Path
) -> None:
    """Bit for bit. Without the counts of the other part they differ."""
    whole = view_with_writes(tmp_path / "whole", owned())
    differing = 0
    for seed in range(8):
        asked = question(seed, tenant="acme")
        weighed = await weigh_by_parts(asked, parts, {}, Deadline.after(10))
        expected = scores(whole, asked)
        assert len(expected) > 50
        assert scores(parts[1].view, weighed) | scores(parts[2].view, weighed) == expected
        differing += scores(parts[1].view, asked) | scores(parts[2].view, asked) != expected
    assert differing == 8


async def test_one_shard_and_an_index_without_tenants_need_no_call(parts: dict[int, Any]) -> None:
    asked = question(1, tenant="acme")
    assert await weigh_by_parts(asked, {1: parts[1]}, {}, Deadline.after(10)) is asked
    plain = question(1)
    assert await weigh_by_parts(plain, parts, {}, Deadline.after(10)) is plain
    assert [each.calls for each in parts.values()] == [0, 0]


async def test_a_part_that_fails_leaves_the_question_as_it_is(parts: dict[int, Any]) -> None:
    parts[2].fails = UnavailableError("gone")
    asked = question(1, tenant="acme")
    assert await weigh_by_parts(asked, parts, {}, Deadline.after(10)) is asked
