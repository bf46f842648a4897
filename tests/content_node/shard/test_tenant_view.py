"""The view of a tenant: what it finds is what a shard of this tenant alone would find."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shards_made import in_memory, passages, question, stored

from winnow.content_node.passages.documents import list_documents
from winnow.content_node.passages.listing import count_passages, list_passages, look_up
from winnow.content_node.shard import tenant_view
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.content_node.shard.view import PlacedSegment, ShardView, view_of
from winnow.domain.listing import CountRequest, DocumentListing, PassageListing, PassageLookup
from winnow.domain.question import RetrievalDepth
from winnow.domain.tenant import stored_id, tenant_of
from winnow.domain.write import EncodedPassage
from winnow.inference.stop_signal import StopSignal

TENANTS = ("acme", "acme2", "b")
DEPTH = RetrievalDepth(passages=5, candidates=20, by_words=10)


def owned() -> list[EncodedPassage]:
    """Passages of three tenants, which use the same ids."""
    return [
        replace(
            each,
            passage=replace(
                each.passage,
                id=stored_id(TENANTS[number % 3], f"p{number // 3}"),
                metadata=f'{{"document": "of {TENANTS[number % 3]}", "even": {number % 2}}}',
            ),
        )
        for number, each in enumerate(passages(240))
    ]


def shared_view(directory: Path, own: list[EncodedPassage]) -> ShardView:
    """Returns a view of a stored segment and two in memory, with a few deleted rows."""
    half, more = len(own) // 2, len(own) * 3 // 4
    view = view_of(stored(directory, own[:half]))
    later = [in_memory(own[half:more]), in_memory(own[more:], 1 + more - half)]
    live = np.ones(later[0].rows, np.bool_)
    live[:9] = False
    first = view.segments[0]
    parts = (first, PlacedSegment(later[0], half, live), PlacedSegment(later[1], more))
    return replace(view, segments=parts, passages=len(own) - 9)


@pytest.fixture
def view(tmp_path: Path) -> ShardView:
    return shared_view(tmp_path / "shared", owned())


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("where", ["", "even = 1"])
@pytest.mark.parametrize("listed", [True, False], ids=["few", "many"])
def test_hits_and_scores_are_those_of_a_shard_of_the_tenant_alone(
    view: ShardView,
    tenant: str,
    where: str,
    listed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bit for bit, as a list of few rows and as a mask of many."""
    if not listed:
        monkeypatch.setattr(tenant_view, "MAX_LISTED_ROWS", 0)
    half = 120
    own = [
        each
        for number, each in enumerate(owned())
        if tenant_of(each.passage.id) == tenant and not half <= number < half + 9
    ]
    alone = view_of(stored(tmp_path / "alone", own))
    depth = replace(DEPTH, where=where)
    for seed in range(5):
        asked = question(seed)
        found = retrieve(view_of_tenant(view, tenant), asked, depth, 0.5)
        expected = retrieve(alone, asked, depth, 0.5)
        names = [
            (each.passage_id, each.distance, each.words, each.hybrid_distance)
            for each in found.hits
        ]
        assert names
        assert names == [
            (each.passage_id, each.distance, each.words, each.hybrid_distance)
            for each in expected.hits
        ]
        assert (found.distances, found.words) == (expected.distances, expected.words)


def test_lists_lookups_counts_and_documents_see_one_tenant(view: ShardView) -> None:
    own, stop = view_of_tenant(view, "acme"), StopSignal()
    listed = list_passages(own, PassageListing(limit=1_000), stop)
    assert len(listed.passages) == 77
    assert {tenant_of(each.id) for each in listed.passages} == {"acme"}
    assert count_passages(own, CountRequest(), stop).passages == own.passages == 77
    both = PassageLookup(ids=[stored_id("acme", "p0"), stored_id("b", "p0")])
    assert [each.id for each in look_up(own, both, stop).passages] == [stored_id("acme", "p0")]
    documents = list_documents(own, DocumentListing(limit=10), stop).documents
    assert [(each.name, each.passages) for each in documents] == [("of acme", 77)]


def test_an_unknown_tenant_sees_nothing(view: ShardView) -> None:
    own = view_of_tenant(view, "acm")
    assert own.passages == 0
    assert not retrieve(own, question(1), DEPTH, 0.5).hits
