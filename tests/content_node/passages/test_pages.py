"""Pages of passages and documents are the same on disk and in memory, and neither skip nor repeat a
passage that stays.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shards_made import in_memory, passages, stored

from winnow.content_node.passages import documents, listing
from winnow.content_node.passages.documents import list_documents
from winnow.content_node.passages.listing import count_passages, list_passages, look_up
from winnow.content_node.shard import ShardView, StoredSegment, view_of
from winnow.content_node.shard.row_filter import RowFilter
from winnow.content_node.shard.view import PlacedSegment
from winnow.domain.listing import (
    CountRequest,
    DocumentListing,
    PassageListing,
    PassageLookup,
    SelectedFields,
    StoredDocument,
)
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage
from winnow.errors import InvalidRequestError, StoppedError
from winnow.inference.stop_signal import StopSignal

ROWS = 48
HOLES = (3, 7)
NAMES = ["b", "ä.md", "a/é#1", "z", "a", "\U0001f600"]
"""Names of documents, whose order in UTF-8 is neither that of UTF-16 nor that of a dictionary."""


def document(row: int) -> dict[str, Any]:
    """The metadata of a row: a third of the rows are of no document."""
    if row % 3 == 0:
        return {} if row % 2 else {"year": 2000 + row}
    name = NAMES[row % len(NAMES)]
    hash_ = "old" if row == 4 else f"hash of {name}"
    return {
        "document": name,
        "document_hash": hash_,
        "document_passages": 16 if row % 2 else 16.0,
        "year": 2000 + row,
    }


def made(row: int, each: EncodedPassage) -> EncodedPassage:
    values = document(row)
    passage = replace(
        each.passage,
        id=f"{'éa'[row % 2]}{row * 7 % ROWS}",
        metadata=json.dumps(values) if values else "",
    )
    return replace(each, passage=passage)


ALL = [made(row, each) for row, each in enumerate(passages(ROWS))]
Cut = Callable[[Sequence[int], set[int]], ShardView]
"""Makes a view of all passages, cut into segments, without the passages of dead rows."""


@pytest.fixture(scope="module", params=["disk", "memory", "both"])
def cut(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cut:
    place = tmp_path_factory.mktemp("pages")
    first: StoredSegment = stored(place / "some", ALL[:20], ALL, holes=HOLES)
    every: StoredSegment = stored(place / "every", ALL, holes=HOLES)

    def make(cuts: Sequence[int], dead: set[int]) -> ShardView:
        alive = np.array([row not in dead | set(HOLES) for row in range(ROWS)])
        base = first if request.param == "both" else every
        begin = {"disk": ROWS, "memory": 0, "both": 20}[request.param]
        ends = sorted({begin, *(each for each in cuts if each > begin), ROWS})
        placed = [PlacedSegment(base, 0, alive[: base.rows])] if begin else []
        placed += [
            PlacedSegment(in_memory(ALL[a:b], a + 1), a, alive[a:b]) for a, b in pairwise(ends)
        ]
        count = int(alive.sum())
        return replace(view_of(base), segments=tuple(placed), passages=count, sequence=9)

    return make


def ids_of(dead: set[int], where: Callable[[dict[str, Any]], bool] = lambda _: True) -> list[str]:
    """The ids of a view in their order, found row by row."""
    rows = (row for row in range(ROWS) if row not in dead | set(HOLES) and where(document(row)))
    return sorted((ALL[row].passage.id for row in rows), key=str.encode)


def pages_of(view: ShardView, limit: int, where: str = "") -> Iterator[tuple[Passage, ...]]:
    after_id, complete = "", False
    while not complete:
        wanted = PassageListing(limit=limit, where=where, after_id=after_id)
        page = list_passages(view, wanted, StopSignal())
        assert page.sequence == 9
        assert page.complete or page.passages
        yield page.passages
        complete = page.complete
        after_id = page.passages[-1].id if page.passages else ""


cuts = st.lists(st.integers(1, ROWS - 1), max_size=4)
dead_rows = st.sets(st.integers(0, ROWS - 1), max_size=ROWS)


@settings(max_examples=40)
@given(cuts, dead_rows, st.integers(1, ROWS))
def test_pages_have_every_passage_once_in_the_order_of_ids(
    cut: Cut, cuts: list[int], dead: set[int], limit: int
) -> None:
    pages = list(pages_of(cut(cuts, dead), limit))
    found = [each for page in pages for each in page]
    assert [each.id for each in found] == ids_of(dead)
    assert all(len(page) == limit for page in pages[:-1])
    by_id = {each.passage.id: each.passage for each in ALL}
    assert all(each == by_id[each.id] for each in found)


@settings(max_examples=40)
@given(st.lists(st.tuples(cuts, dead_rows), min_size=2, max_size=12), st.integers(1, 9))
def test_a_passage_that_stays_is_listed_once_while_others_come_and_go(
    cut: Cut, states: list[tuple[list[int], set[int]]], limit: int
) -> None:
    """Each page is of another state of the shard, with other segments, as after a merge."""
    views = [cut(*state) for state in states]
    found: list[str] = []
    page = list_passages(views[0], PassageListing(limit=limit), StopSignal())
    while True:
        found += [each.id for each in page.passages]
        if page.complete:
            break
        views = [*views[1:], views[0]]
        wanted = PassageListing(limit=limit, after_id=found[-1])
        page = list_passages(views[0], wanted, StopSignal())
    assert max(Counter(found).values(), default=1) == 1
    stays = set(ids_of(set().union(*(dead for _, dead in states))))
    assert stays <= set(found) <= set(ids_of(set()))


@settings(max_examples=25)
@given(cuts, dead_rows, st.integers(1, 9))
def test_a_filter_selects_the_listed_and_the_counted_passages(
    cut: Cut, cuts: list[int], dead: set[int], limit: int
) -> None:
    view = cut(cuts, dead)
    where = "year >= 2020 and exists document"
    expected = ids_of(dead, lambda each: each.get("year", 0) >= 2020 and "document" in each)
    found = [each.id for page in pages_of(view, limit, where) for each in page]
    assert found == expected
    counted = [
        count_passages(view, CountRequest(where=each), StopSignal()).passages
        for each in (where, "")
    ]
    assert counted == [len(expected), len(ids_of(dead))]


def test_a_page_ends_early_when_its_passages_are_long(
    cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_PAGE_BYTES", 200)
    pages = list(pages_of(cut([], set()), ROWS))
    assert len(pages) > 2
    assert [each.id for page in pages for each in page] == ids_of(set())


def test_only_the_selected_fields_are_returned(cut: Cut) -> None:
    view, wanted = cut([30], set()), ALL[10].passage
    for name in ("title", "text", "metadata"):
        fields = SelectedFields(**{each: each == name for each in ("title", "text", "metadata")})
        lookup = PassageLookup(ids=[wanted.id], fields=fields)
        (found,) = look_up(view, lookup, StopSignal()).passages
        assert found == replace(Passage(wanted.id, "", ""), **{name: getattr(wanted, name)})


@settings(max_examples=25)
@given(cuts, dead_rows)
def test_passages_are_found_by_id_unless_they_were_deleted(
    cut: Cut, cuts: list[int], dead: set[int]
) -> None:
    ids = [ALL[30].passage.id, "unknown", *(each.passage.id for each in ALL[:9])]
    found = look_up(cut(cuts, dead), PassageLookup(ids=ids), StopSignal())
    assert [each.id for each in found.passages] == [each for each in ids if each in ids_of(dead)]
    assert found.looked_up == len(ids)


def test_a_lookup_stops_when_the_passages_are_long(
    cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_PAGE_BYTES", 1)
    ids = ["unknown", ALL[30].passage.id, ALL[31].passage.id]
    found = look_up(cut([], set()), PassageLookup(ids=ids), StopSignal())
    assert ([each.id for each in found.passages], found.looked_up) == (ids[1:2], 2)


def test_a_replaced_passage_is_listed_once_with_its_new_text(tmp_path: Path) -> None:
    old = stored(tmp_path / "shard", ALL[:3])
    name = ALL[1].passage.id
    later = [
        replace(ALL[1], passage=replace(ALL[1].passage, text=text)) for text in ("new", "newest")
    ]
    placed = (
        PlacedSegment(old, 0, np.array([True, False, True])),
        PlacedSegment(in_memory(later), 3, np.array([False, True])),
    )
    view = replace(view_of(old), segments=placed)
    listed = list_passages(view, PassageListing(limit=9), StopSignal()).passages
    assert [each.text for each in listed if each.id == name] == ["newest"]
    assert len(listed) == 3
    found = look_up(view, PassageLookup(ids=[name]), StopSignal()).passages
    assert [each.text for each in found] == ["newest"]


def documents_of(dead: set[int]) -> list[StoredDocument]:
    """The documents of a view, found row by row."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in range(ROWS):
        values = document(row)
        if "document" in values and row not in dead | set(HOLES):
            rows.setdefault(values["document"], []).append(values)
    hashes = {name: {each["document_hash"] for each in own} for name, own in rows.items()}
    return [
        StoredDocument(
            name=name,
            passages=len(rows[name]),
            hash=hashes[name].pop() if len(hashes[name]) == 1 else "",
            expected=16,
        )
        for name in sorted(rows, key=str.encode)
    ]


BY_ROW, BY_INDEX = 0, 10**9
"""Costs of a row by which documents are always read from their rows, or from the index."""


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts, dead_rows, st.integers(1, len(NAMES)), st.sampled_from([BY_ROW, BY_INDEX]))
def test_documents_are_listed_with_their_passages_and_checksums(
    cut: Cut,
    monkeypatch: pytest.MonkeyPatch,
    cuts: list[int],
    dead: set[int],
    limit: int,
    row_cost: int,
) -> None:
    monkeypatch.setattr(documents, "_ROW_COST", row_cost)
    view = cut(cuts, dead)
    found: list[StoredDocument] = []
    page = list_documents(view, DocumentListing(limit=limit), StopSignal())
    while True:
        found += page.documents
        if page.complete:
            break
        assert len(page.documents) == limit
        wanted = DocumentListing(limit=limit, after_document=found[-1].name)
        page = list_documents(view, wanted, StopSignal())
    assert found == documents_of(dead)


@pytest.mark.parametrize("number", [-1, 1e300, 2.5, True, "16"])
def test_an_impossible_number_of_passages_is_not_reported(cut: Cut, number: object) -> None:
    metadata = json.dumps({"document": "a", "document_passages": number})
    passage = replace(ALL[0], passage=replace(ALL[0].passage, metadata=metadata))
    placed = PlacedSegment(in_memory([passage], 1), 0, np.ones(1, bool))
    view = replace(cut([], set()), segments=(placed,), passages=1)
    page = list_documents(view, DocumentListing(limit=9), StopSignal())
    assert [(each.name, each.expected) for each in page.documents] == [("a", None)]


def test_documents_are_read_in_parts(cut: Cut, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_VALUES_AT_ONCE", 1)
    page = list_documents(cut([30], set()), DocumentListing(limit=9), StopSignal())
    assert list(page.documents) == documents_of(set())


def test_one_passage_of_each_document_is_read(cut: Cut, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document may have a million passages, whose metadata would take half a minute to read."""
    view, read = cut([30], set()), list[int]()

    def counting(load_fields: Callable[..., Any]) -> Callable[..., Any]:
        def load(segment: object, rows: Sequence[int], fields: object) -> Any:
            read.extend(rows)
            return load_fields(segment, rows, fields)

        return load

    for segment in {type(placed.segment) for placed in view.segments}:
        monkeypatch.setattr(segment, "load_fields", counting(segment.load_fields))
    page = list_documents(view, DocumentListing(limit=9), StopSignal())
    assert len(read) == len(page.documents)


def test_of_few_passages_their_own_documents_are_read(
    cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small tenant would otherwise wait for the documents of all others."""
    monkeypatch.setattr(RowFilter, "strings_above", None)
    view = cut([], set())
    few = [replace(each, live_rows=np.arange(each.segment.rows) == 2) for each in view.segments]
    page = list_documents(
        replace(view, segments=tuple(few)), DocumentListing(limit=9), StopSignal()
    )
    expected = [document(each.first_row + 2).get("document", "") for each in few]
    assert [each.name for each in page.documents] == sorted(filter(None, expected))


class StopAtCheck(StopSignal):
    """A signal that is set after a number of checks."""

    def __init__(self, checks: int) -> None:
        super().__init__()
        self._checks = iter(range(checks))

    @property
    def is_set(self) -> bool:
        return next(self._checks, None) is None


def test_a_stopped_call_ends_between_documents_and_among_filtered_ones(
    cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_VALUES_AT_ONCE", 1)
    monkeypatch.setattr(documents, "_ROWS_AT_ONCE", 1)
    view = replace(cut([], set()), segments=cut([], set()).segments[:1])
    filtered = DocumentListing(limit=9, where="year = 2019")
    for wanted, cost in ((DocumentListing(limit=9), BY_ROW), (filtered, BY_INDEX)):
        monkeypatch.setattr(documents, "_ROW_COST", cost)
        with pytest.raises(StoppedError):
            list_documents(view, wanted, StopAtCheck(4))


def test_a_filter_selects_the_passages_that_count_for_documents(cut: Cut) -> None:
    wanted = DocumentListing(limit=9, where="year >= 2040")
    page = list_documents(cut([30], set()), wanted, StopSignal())
    old = {row for row in range(ROWS) if row < 40}
    assert list(page.documents) == documents_of(old)


def test_an_invalid_filter_is_refused_and_a_stopped_call_ends(cut: Cut) -> None:
    view, stop = cut([], set()), StopSignal()
    with pytest.raises(InvalidRequestError):
        list_passages(view, PassageListing(limit=1, where="year >"), stop)
    stop.set()
    for work in (
        lambda: list_passages(view, PassageListing(limit=1), stop),
        lambda: look_up(view, PassageLookup(ids=[ALL[30].passage.id]), stop),
        lambda: list_documents(view, DocumentListing(limit=1), stop),
        lambda: count_passages(view, CountRequest(where="year > 1"), stop),
    ):
        with pytest.raises(StoppedError):
            work()
