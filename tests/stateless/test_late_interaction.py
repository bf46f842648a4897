"""A front uses late interaction only if all passages of the index have token vectors."""

import asyncio
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from fake_shards import LIMITS, question
from fakes import ENCODED, FakeSearcher, reading, shard_info

from winnow.deadline import Deadline
from winnow.domain.answered import Timings
from winnow.domain.question import (
    EncodedQuestion,
    QuestionTokens,
    ReadScope,
    RetrievalDepth,
    Retriever,
)
from winnow.domain.shard import ShardInfo
from winnow.domain.stopping import StoppingRule
from winnow.searcher import Retrieved
from winnow.stateless.answer.calls import ShardCalls
from winnow.stateless.answer.scatter import ScatterResult
from winnow.stateless.answer.search import search
from winnow.stateless.answer.search_result import SearchResult
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.index_version import index_version_of
from winnow.stateless.cluster.membership import ClusterView, FrontEncoding, form_view
from winnow.stateless.cluster.node import ReplicaAt

TOKENS = QuestionTokens(np.ones((3, 4), np.int16), np.ones(3, np.float32))
ASKED = replace(ENCODED, tokens=TOKENS)


def info(shard: int, token_vectors: str) -> ShardInfo:
    return shard_info(
        shard,
        passages=5,
        bundle_fingerprint="print",
        generation="g",
        index_passages=10,
        token_vectors=token_vectors,
    )


@pytest.mark.parametrize(
    ("first", "second", "is_used"),
    [("ours", "ours", True), ("ours", "", False), ("", "", False), ("other", "other", False)],
)
def test_every_shard_needs_the_token_vectors_of_the_bundle(
    first: str, second: str, is_used: bool
) -> None:
    cluster = Cluster({}, {0: info(0, first), 1: info(1, second)})
    asked = cluster.with_usable_tokens(ASKED, "ours")
    assert (asked.tokens is TOKENS) == is_used


def test_every_replica_needs_token_vectors() -> None:
    encoding = FrontEncoding("print", 2, "bundle")
    present = {
        ReplicaAt("a", 0): info(0, "ours"),
        ReplicaAt("b", 0): info(0, ""),
        ReplicaAt("c", 1): info(1, "ours"),
    }
    view = form_view(present, encoding, ClusterView())
    assert [each.token_vectors for each in view.shard_infos.values()] == ["", "ours"]
    assert view.replicas == {0: ("a", "b"), 1: ("c",)}
    del present[ReplicaAt("b", 0)]
    view = form_view(present, encoding, view)
    assert [each.token_vectors for each in view.shard_infos.values()] == ["ours", "ours"]


def test_cached_answers_are_not_used_after_token_vectors_appear() -> None:
    before, after = (
        index_version_of({0: info(0, each)}, {0: [0.0]}, 1.0).name for each in ("", "ours")
    )
    assert before != after


@dataclass
class LateSearcher(FakeSearcher):
    """A shard that may rank by late interaction, and records the questions."""

    has_token_vectors: bool = True
    loses_token_vectors: bool = False
    """Whether it has none after its first retrieval."""
    asked: list[EncodedQuestion] = field(default_factory=list)

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        self.asked.append(question)
        found = await super().retrieve(question, depth, deadline)
        used = self.has_token_vectors and question.tokens is not None
        lacking = 0 if used or question.tokens is None else 3
        self.has_token_vectors &= not self.loses_token_vectors
        timings = replace(found.timings, without_tokens=lacking)
        return replace(found, late_interaction=used, timings=timings)


def calls_of(shards: list[LateSearcher]) -> ShardCalls:
    asked = replace(question(ReadScope.GLOBAL), retriever=Retriever.HYBRID)
    limits = replace(LIMITS, candidates=3)
    searchers = dict(enumerate(shards))
    calls = ShardCalls(searchers, asked, ASKED, Deadline.after(60), limits=limits)
    assert calls.uses_late_interaction
    return calls


def retrieve_all(shards: list[LateSearcher]) -> ScatterResult[Retrieved]:
    return asyncio.run(calls_of(shards).retrieve_all())


def search_all(shards: list[LateSearcher]) -> SearchResult:
    rules = {True: StoppingRule(0.0, 0.0, 1.0), False: StoppingRule(0.0, 0.0, 2.0)}
    return asyncio.run(search(calls_of(shards), rules.__getitem__, Timings()))


@pytest.mark.parametrize(("loses", "read"), [(False, {"b", "c"}), (True, {"b"})])
def test_hits_of_another_order_replace_only_their_own_passages(loses: bool, read: set[str]) -> None:
    """A shard merges between retrieving and reading, and may lose its token vectors."""
    old = [reading("a", -9, distance=0.1), reading("b", -9, distance=0.2)]
    new = [reading("c", -9, distance=0.05), reading("b", -9, distance=0.2)]
    shard = LateSearcher(
        old, generation="old", next_generations=[("new", new)], loses_token_vectors=loses
    )
    found = search_all([shard])
    assert {each.passage.id for own in found.readings.values() for each in own} == read
    assert not found.failures


def test_reading_stops_by_the_rule_of_the_order_that_was_used() -> None:
    late, without = (
        search_all([LateSearcher([reading("a")], has_token_vectors=has)]) for has in (True, False)
    )
    assert late.rule is not None
    assert without.rule is not None
    assert (late.rule.bar, without.rule.bar) == (1.0, 2.0)
    assert (late.lost_late_interaction, without.lost_late_interaction) == (False, True)


def test_a_shard_that_lost_its_token_vectors_makes_all_shards_rank_without() -> None:
    shards = [
        LateSearcher([reading("a", distance=0.1)]),
        LateSearcher([reading("b", distance=0.2)], has_token_vectors=False),
    ]
    gathered = retrieve_all(shards)
    assert [each.late_interaction for each in gathered.results.values()] == [False, False]
    assert [each.timings.without_tokens for each in gathered.results.values()] == [0, 3]
    for shard in shards:
        assert [each.tokens is None for each in shard.asked] == [False, True]


def test_shards_that_rank_alike_are_called_once() -> None:
    shards = [LateSearcher([reading(each, distance=0.1)]) for each in "ab"]
    gathered = retrieve_all(shards)
    assert all(each.late_interaction for each in gathered.results.values())
    assert [len(shard.asked) for shard in shards] == [1, 1]
