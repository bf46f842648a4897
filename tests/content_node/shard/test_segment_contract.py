"""Segments on disk and in memory give equal results at equal costs, and end by the same rules."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_filters import filters, metadata
from shards_made import VOCABULARY, in_memory, make, passages, question, stored
from unpacked import tokens

from winnow.content_node.shard import StoredSegment, hnsw, open_shard
from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.field_tables import MemoryTables, StoredFields, write_tables
from winnow.content_node.shard.memory_fields import MemoryFields
from winnow.content_node.shard.row_filter import FieldIndex, RowFilter, SortedValues, ValueRows
from winnow.content_node.shard.segment import Segment
from winnow.domain.write import EncodedPassage
from winnow.errors import ArtefactError, InvalidRequestError, StoppedError
from winnow.filtering import Filter, Value, ValueKind, fields_of, parse
from winnow.inference.stop_signal import StopSignal

METADATA: list[dict[str, Any]] = [
    {"year": 2010, "lang": "en", "tags": ["a", "b"], "author": {"name": "x"}},
    {"year": 2011.5, "lang": "de", "tags": "a", "draft": True},
    {},
    {"year": "2010", "tags": [], "draft": None},
    {"year": [1, 1, 3000], "lang": ["en", "en"]},
]
EMPTY_ROWS = (3, 7)
KINDS = ["graph", "exact", "without graph", "memory"]
MASKS = 1 << 20


def with_metadata(each: EncodedPassage, values: dict[str, Any]) -> EncodedPassage:
    text = json.dumps(values) if values else ""
    return replace(each, passage=replace(each.passage, metadata=text))


ALL = [with_metadata(each, METADATA[row % 5]) for row, each in enumerate(passages(60))]


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Segment]:
    """The same passages in four ways; on disk rows 3 and 7 are empty."""
    place = tmp_path_factory.mktemp("segments")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hnsw, "module", None)
        make(place / "without graph", ALL, holes=EMPTY_ROWS)
    return {
        "graph": stored(place / "graph", ALL, holes=EMPTY_ROWS, ef=200, exact_up_to=0),
        "exact": stored(place / "exact", ALL, holes=EMPTY_ROWS),
        "without graph": open_shard(place / "without graph", ef=200, exact_up_to=0),
        "memory": in_memory(ALL),
    }


@pytest.fixture(params=KINDS)
def segment(request: pytest.FixtureRequest, segments: dict[str, Segment]) -> Segment:
    return segments[request.param]


def built_rarities(segments: dict[str, Segment]) -> BuiltRarities:
    base = segments["exact"]
    assert isinstance(base, StoredSegment)
    return base.built_rarities


def held(segment: Segment) -> np.ndarray:
    return (
        np.ones(segment.rows, np.bool_) if segment.occupied_rows is None else segment.occupied_rows
    )


class CountedFields:
    """Counts the rows that lookups return."""

    def __init__(self, inner: FieldIndex) -> None:
        self._inner = inner
        self.lookups: list[int] = []

    @property
    def field_names(self) -> tuple[str, ...]:
        return self._inner.field_names

    def values_by_kind(
        self, field: str, stop: StopSignal | None
    ) -> Mapping[ValueKind, SortedValues]:
        return {
            kind: CountedValues(own, self.lookups)
            for kind, own in self._inner.values_by_kind(field, stop).items()
        }


class CountedValues:
    def __init__(self, inner: SortedValues, lookups: list[int]) -> None:
        self._inner, self._lookups = inner, lookups

    def all_rows(self) -> ValueRows:
        return self._count(self._inner.all_rows())

    def rows_equal(self, values: Sequence[Value]) -> ValueRows:
        return self._count(self._inner.rows_equal(values))

    def rows_below(self, value: Value, inclusive: bool) -> ValueRows:
        return self._count(self._inner.rows_below(value, inclusive))

    def rows_above(self, value: Value, inclusive: bool) -> ValueRows:
        return self._count(self._inner.rows_above(value, inclusive))

    def values_above(self, value: Value, limit: int) -> list[tuple[Value, ValueRows]]:
        return self._inner.values_above(value, limit)

    def _count(self, rows: ValueRows) -> ValueRows:
        self._lookups.append(len(rows))
        return rows


@contextlib.contextmanager
def database(values: Sequence[dict[str, Any]], block: int = 256) -> Iterator[StoredFields]:
    """Tables with `block` values in a block."""
    with contextlib.closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        rows = ((row, json.dumps(one)) for row, one in enumerate(values) if one)
        write_tables(connection, rows, block)

        def select(query: str, parameters: Sequence[Value]) -> list[Any]:
            return connection.execute(query, parameters).fetchall()

        yield StoredFields(select, len(values))


def memory_fields(values: Sequence[dict[str, Any]]) -> MemoryFields:
    return MemoryFields.parse([json.dumps(one) if one else "" for one in values])


@pytest.fixture(params=["disk", "memory"])
def fields(request: pytest.FixtureRequest) -> Iterator[FieldIndex]:
    """The fields of `METADATA`."""
    if request.param == "memory":
        yield memory_fields(METADATA)
        return
    with database(METADATA) as made:
        yield made


@settings(max_examples=80, print_blob=True)
@given(values=st.lists(metadata, max_size=12), wanted=filters, block=st.integers(1, 4))
def test_a_filter_accepts_what_it_means_at_the_same_cost_on_disk_and_in_memory(
    values: list[dict[str, Any]], wanted: Filter, block: int
) -> None:
    meant, text = [wanted.matches(one) for one in values], str(wanted)
    with database(values, block) as tables:
        on_disk, own = CountedFields(tables), CountedFields(memory_fields(values))
        for each in (on_disk, own):
            row_filter = RowFilter(each, len(values), MASKS)
            assert row_filter.matching_rows(text).tolist() == meant
            assert row_filter.matching_rows(text).tolist() == meant  # from the cache
        assert sum(on_disk.lookups) == sum(own.lookups)
        names = {name for one in values for name in fields_of(one)}
        assert on_disk.field_names == own.field_names == tuple(sorted(names))
    for cut in {0, len(values) // 2, len(values)}:
        first, last = memory_fields(values[:cut]), memory_fields(values[cut:])
        RowFilter(first, cut, MASKS).matching_rows(text)
        joined = first.joined(last)
        assert RowFilter(joined, len(values), MASKS).matching_rows(text).tolist() == meant
        assert joined.field_names == tuple(sorted(names))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("n = 7", 1),
        ("n in (7, 8, 9000)", 2),
        ("n in (7, 7, 8)", 2),
        ("n < 10", 10),
        ("n <= 10", 11),
        ("n > 2990 and n < 5", 9 + 5),
        ("n != 0", 2_999),
        ("exists n", 3_000),
        ("exists tags", 3_000),
        ("tags = 'a'", 3_000),
        ("missing != 1", 0),
    ],
)
def test_a_comparison_touches_the_rows_that_it_finds_and_no_others(text: str, rows: int) -> None:
    values = [{"n": n, "tags": ["a", str(n)]} for n in range(3_000)]
    with database(values) as tables:
        for each in (tables, memory_fields(values)):
            counted = CountedFields(each)
            found = RowFilter(counted, len(values), MASKS).matching_rows(text)
            assert found.tolist() == [parse(text).matches(one) for one in values]
            assert sum(counted.lookups) == rows


def test_ranges_over_many_values_are_read_in_blocks() -> None:
    values = [{"at": f"{n:05}", "n": [n, -n / 7]} for n in range(3_000)]
    made = MemoryTables((row, json.dumps(one)) for row, one in enumerate(values))
    ((blocks,),) = made.select("SELECT count(*) FROM blocks WHERE name = 'at'")
    assert blocks == 12
    entries: list[int] = []

    def select(query: str, parameters: Sequence[Value] = ()) -> list[Any]:
        found = made.select(query, parameters)
        entries.append(len(found))
        return found

    for text in ("at < '01000'", "at >= '00999' and n <= -3.5", "n > 2999", "at != '00000'"):
        row_filter = RowFilter(StoredFields(select, len(values)), len(values), MASKS)
        entries.clear()
        wanted = parse(text)
        assert row_filter.matching_rows(text).tolist() == [wanted.matches(one) for one in values]
        assert sum(entries) < 800


def test_a_repeated_filter_is_looked_up_once_and_the_mask_is_the_callers(
    fields: FieldIndex,
) -> None:
    counted = CountedFields(fields)
    row_filter = RowFilter(counted, len(METADATA), MASKS)
    first = row_filter.matching_rows('lang = "en"')
    lookups, meant = len(counted.lookups), first.tolist()
    first[:] = False
    second = row_filter.matching_rows('lang = "en"')
    second[:] = False
    assert (
        row_filter.matching_rows('lang = "en"').tolist()
        == meant
        == [True, False, False, False, True]
    )
    assert len(counted.lookups) == lookups


def test_a_field_that_no_row_has_accepts_nothing(fields: FieldIndex) -> None:
    row_filter = RowFilter(fields, len(METADATA), MASKS)
    assert not row_filter.matching_rows("missing != 1").any()
    assert row_filter.matching_rows("not exists missing").all()


def test_an_expression_that_is_not_a_filter_is_refused(fields: FieldIndex) -> None:
    with pytest.raises(InvalidRequestError, match="filter: expected"):
        RowFilter(fields, len(METADATA), MASKS).matching_rows("year >")


def test_tables_with_rows_beyond_the_shard_are_refused() -> None:
    made = MemoryTables((row, json.dumps(one)) for row, one in enumerate(METADATA))
    with pytest.raises(ArtefactError, match="field 'year' names row 4, the shard has 4 rows"):
        RowFilter(StoredFields(made.select, 4), 4, MASKS).matching_rows("year > 0")


def test_a_very_long_string_is_greater_than_every_filter_that_it_begins_with() -> None:
    values = [{"text": "a" * 50_000}, {"text": "a" * 900}, {"text": "b"}]
    made = MemoryTables((row, json.dumps(one)) for row, one in enumerate(values))
    for fields in (StoredFields(made.select, 3), memory_fields(values)):
        found = RowFilter(fields, 3, MASKS).matching_rows(f"text > '{'a' * 900}'")
        assert found.tolist() == [True, False, True]
    ((longest,),) = made.select("SELECT max(length(value)) FROM attributes")
    assert longest < 10_000


def test_many_threads_get_the_same_masks() -> None:
    values = [{"n": n % 7, "s": str(n)} for n in range(500)]
    made = MemoryTables((row, json.dumps(one)) for row, one in enumerate(values))
    texts = [f"n = {n} or s < '{n}'" for n in range(7)] * 8
    masks = []
    for fields in (StoredFields(made.select, len(values)), memory_fields(values)):
        with ThreadPoolExecutor(8) as pool:
            masks.append(list(pool.map(RowFilter(fields, len(values), MASKS).matching_rows, texts)))
    assert all(map(np.array_equal, *masks))


class CountedRow(dict[str, list[Value]]):
    """The fields of a row; counts how often they are looked at."""

    looks = 0

    def get(self, *names: Any) -> Any:
        CountedRow.looks += 1
        return super().get(*names)


def test_in_memory_rows_are_looked_at_once_for_any_number_of_comparisons() -> None:
    rows = [CountedRow(tags=[f"t{n % 7}", f"t{n % 11}"]) for n in range(400)]
    row_filter = RowFilter(MemoryFields(rows, ["tags"]), len(rows), MASKS)
    CountedRow.looks = 0
    for text in (" or ".join(f"tags < 't{n}'" for n in range(95)), "tags != 't1'", "exists tags"):
        wanted = parse(text, 8_000)
        assert row_filter.matching_rows(text).tolist() == [
            wanted.accepts(dict(row)) for row in rows
        ]
    assert CountedRow.looks == 400


class StopsAfterLookups(CountedFields):
    """Sets a stop when a field is looked up."""

    def __init__(self, inner: FieldIndex, stop: StopSignal) -> None:
        super().__init__(inner)
        self._stop = stop

    def values_by_kind(
        self, field: str, stop: StopSignal | None
    ) -> Mapping[ValueKind, SortedValues]:
        found = super().values_by_kind(field, stop)
        self._stop.set()
        return found


def test_a_filter_ends_before_its_next_comparison_once_it_is_stopped(fields: FieldIndex) -> None:
    stop = StopSignal()
    counted = StopsAfterLookups(fields, stop)
    row_filter = RowFilter(counted, len(METADATA), MASKS)
    with pytest.raises(StoppedError):
        row_filter.matching_rows("year > 2000 and lang = 'en'", stop)
    assert len(counted.lookups) == 1
    with pytest.raises(StoppedError):
        row_filter.matching_rows("year > 2000 and lang = 'en'", stop)
    assert len(counted.lookups) == 1
    assert row_filter.matching_rows("year > 2000 and lang = 'en'").tolist() == [
        True,
        *[False] * 3,
        True,
    ]


class StoppingRow(CountedRow):
    """The fields of a row; sets a stop when they are looked at."""

    def __init__(self, stop: StopSignal, value: Value) -> None:
        super().__init__(n=[value])
        self._stop = stop

    def get(self, *names: Any) -> Any:
        self._stop.set()
        return super().get(*names)


def test_gathering_resumes_where_it_was_stopped() -> None:
    stop = StopSignal()
    rows = [StoppingRow(stop, n) for n in range(5)]
    row_filter = RowFilter(MemoryFields(rows, ["n"]), len(rows), MASKS)
    CountedRow.looks = 0
    with pytest.raises(StoppedError):
        row_filter.matching_rows("n >= 1", stop)
    assert CountedRow.looks == 1
    assert row_filter.matching_rows("n >= 1").tolist() == [False, True, True, True, True]
    assert CountedRow.looks == 5


class BlockingRow(dict[str, list[Value]]):
    """The fields of a row; a look at them waits until it is released."""

    def __init__(self, begun: Event, release: Event) -> None:
        super().__init__(n=[1.0])
        self._begun, self._release = begun, release

    def get(self, *names: Any) -> Any:
        self._begun.set()
        self._release.wait()
        return super().get(*names)


def test_a_filter_that_waits_for_another_to_gather_ends_by_its_own_stop() -> None:
    begun, release, stop = Event(), Event(), StopSignal()
    row_filter = RowFilter(MemoryFields([BlockingRow(begun, release)], ["n"]), 1, MASKS)
    with ThreadPoolExecutor(2) as pool:
        gathering = pool.submit(row_filter.matching_rows, "n = 1")
        begun.wait()
        waiting = pool.submit(row_filter.matching_rows, "n = 1.0", stop)
        stop.set()
        with pytest.raises(StoppedError):
            waiting.result()
        assert not gathering.done()
        release.set()
        assert gathering.result().tolist() == [True]


@pytest.mark.parametrize("text", ["lang = 'en'", "not exists year", "year != 2010", "tags < 'b'"])
def test_a_segment_accepts_the_rows_that_hold_a_matching_passage(
    segment: Segment, text: str
) -> None:
    meant = np.array([parse(text).matches(METADATA[row % 5]) for row in range(60)]) & held(segment)
    assert segment.matching_rows(text).tolist() == meant.tolist()
    assert segment.field_names == ("author.name", "draft", "lang", "tags", "year")


def test_nearest_rows_and_their_distances_are_the_same_bit_for_bit(
    segment: Segment, segments: dict[str, Segment]
) -> None:
    for seed in range(5):
        vector = question(seed).vector
        distances = segments["memory"].distances(vector, range(60)).tolist()
        allowed = segment.matching_rows("exists lang")
        for mask in (None, allowed):
            rows = np.flatnonzero(held(segment) if mask is None else mask & held(segment)).tolist()
            meant = sorted(((row, distances[row]) for row in rows), key=lambda pair: pair[1])[:10]
            assert segment.nearest(vector, 10, mask) == meant
        assert segment.distances(vector, [5, 1]).tolist() == [distances[5], distances[1]]


def test_the_best_rows_by_words_and_their_scores_are_the_same_bit_for_bit(
    segment: Segment, segments: dict[str, Segment]
) -> None:
    built = built_rarities(segments)
    for first in range(0, VOCABULARY, 7):
        terms = built.terms_of_tokens([first, 1, 2])
        scores = segments["memory"].bm25_scores(terms, range(60)).tolist()
        for mask in (None, segment.matching_rows("exists lang")):
            allowed = held(segment) if mask is None else mask & held(segment)
            meant = [(row, score) for row, score in enumerate(scores) if score and allowed[row]]
            meant.sort(key=lambda pair: (-pair[1], pair[0]))
            others = np.flatnonzero(allowed)[5::-2].tolist()
            found, scores_of_others = segment.best_by_words(terms, 60, mask, others=others)
            assert found == meant
            assert scores_of_others.tolist() == [scores[row] for row in others]
        some = [row for row in (9, 2, 30) if held(segment)[row]]
        assert segment.bm25_scores(terms, some).tolist() == [scores[row] for row in some]


def test_a_stopped_search_ends(segment: Segment, segments: dict[str, Segment]) -> None:
    stop = StopSignal()
    stop.set()
    terms = built_rarities(segments).terms_of_tokens([1])
    with pytest.raises(StoppedError):
        segment.matching_rows("exists draft", stop)
    with pytest.raises(StoppedError):
        segment.nearest(question(0).vector, 3, None, stop)
    with pytest.raises(StoppedError):
        segment.best_by_words(terms, 3, None, stop)


def test_passages_are_named_found_and_loaded_by_row(segment: Segment) -> None:
    ((name, sequence),) = segment.ids_and_sequences([4])
    assert name == "p4"
    assert segment.find_row(name, sequence) == 4
    assert segment.find_row(name, sequence + 1) is None
    assert segment.load(4).passage == ALL[4].passage
    assert segment.load(4).tokens.ids == tokens(ALL[4]).ids
