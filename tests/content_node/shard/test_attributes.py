"""What is looked up in tables is what a filter means for each passage."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_filters import filters, metadata

from winnow.content_node.shard.attribute_tables import AttributesInMemory, write_attributes
from winnow.content_node.shard.attributes import Attributes
from winnow.content_node.shard.passage_fields import MemoryFields
from winnow.errors import ArtefactError, InvalidRequestError, StoppedError
from winnow.filtering import Filter, Value, fields_of, parse
from winnow.inference.stop import Stop

PASSAGES: list[dict[str, Any]] = [
    {"year": 2010, "lang": "en", "tags": ["a", "b"], "author": {"name": "x"}},
    {"year": 2011.5, "lang": "de", "tags": "a", "draft": True},
    {},
    {"year": "2010", "tags": [], "draft": None},
    {"year": [1, 1, 3000], "lang": ["en", "en"]},
]


class Tables:
    """A database that counts what it is asked."""

    def __init__(self, passages: Sequence[dict[str, Any]], block: int = 256) -> None:
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        rows = ((row, json.dumps(one)) for row, one in enumerate(passages) if one)
        write_attributes(self._connection, rows, block)
        self.asked = 0

    def select(self, query: str, values: Sequence[Value] = ()) -> list[Any]:
        self.asked += 1
        return self._connection.execute(query, values).fetchall()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def tables() -> Iterator[Tables]:
    with contextlib.closing(Tables(PASSAGES)) as made:
        yield made


@settings(max_examples=500, print_blob=True)
@given(
    passages=st.lists(metadata, max_size=12),
    wanted=filters,
    block=st.integers(1, 4),
)
def test_the_tables_let_through_what_the_filter_means(
    passages: list[dict[str, Any]], wanted: Filter, block: int
) -> None:
    with contextlib.closing(Tables(passages, block)) as tables:
        attributes = Attributes(tables.select, len(passages))
        meant = [wanted.matches(one) for one in passages]
        text = str(wanted)
        assert attributes.where(text).tolist() == meant
        assert attributes.where(text).tolist() == meant  # as it was kept
        names = {name for one in passages for name in fields_of(one)}
        assert attributes.names == tuple(sorted(names))
    lines = [json.dumps(one) if one else "" for one in passages]
    for cut in {0, len(lines) // 2, len(lines)}:
        first, last = MemoryFields.of(lines[:cut]), MemoryFields.of(lines[cut:])
        first.where(text)
        asked = first.joined(last)
        assert asked.where(text).tolist() == meant
        assert asked.names == attributes.names


def test_ranges_over_many_values_are_read_in_blocks() -> None:
    passages = [{"at": f"{n:05}", "n": [n, -n / 7]} for n in range(3_000)]
    for text in ("at < '01000'", "at >= '00999' and n <= -3.5", "n > 2999", "at != '00000'"):
        with contextlib.closing(Tables(passages)) as tables:
            found = Attributes(tables.select, len(passages)).where(text)
            wanted = parse(text)
            assert found.tolist() == [wanted.matches(one) for one in passages]
            ((blocks,),) = tables.select("SELECT count(*) FROM blocks WHERE name = 'at'")
            assert blocks == 12


def test_a_repeated_filter_is_looked_up_once_and_nobody_changes_what_is_kept(
    tables: Tables,
) -> None:
    attributes = Attributes(tables.select, len(PASSAGES))
    first = attributes.where('lang = "en"')
    asked, meant = tables.asked, first.tolist()
    first[:] = False
    second = attributes.where('lang = "en"')
    second[:] = False
    assert attributes.where('lang = "en"').tolist() == meant == [True, False, False, False, True]
    assert tables.asked == asked


def test_a_field_that_no_row_has_lets_nothing_through(tables: Tables) -> None:
    attributes = Attributes(tables.select, len(PASSAGES))
    assert not attributes.where("missing != 1").any()
    assert attributes.where("not exists missing").all()


def test_what_is_no_filter_is_refused(tables: Tables) -> None:
    with pytest.raises(InvalidRequestError, match="filter: expected"):
        Attributes(tables.select, len(PASSAGES)).where("year >")
    with pytest.raises(InvalidRequestError, match="filter: expected"):
        MemoryFields.of([]).where("year >")


def test_tables_of_more_rows_than_there_are_are_no_good(tables: Tables) -> None:
    with pytest.raises(ArtefactError, match="a field is of row 4, and there are 4"):
        Attributes(tables.select, 4).where("year > 0")


def test_a_very_long_string_is_greater_than_every_filter_that_it_begins_with() -> None:
    passages = [{"text": "a" * 50_000}, {"text": "a" * 900}, {"text": "b"}]
    with contextlib.closing(Tables(passages)) as tables:
        attributes = Attributes(tables.select, len(passages))
        assert attributes.where(f"text > '{'a' * 900}'").tolist() == [True, False, True]
        ((longest,),) = tables.select("SELECT max(length(value)) FROM attributes")
        assert longest < 10_000


def test_many_threads_get_the_same_masks_from_tables_in_memory() -> None:
    passages = [{"n": n % 7, "s": str(n)} for n in range(500)]
    made = AttributesInMemory((row, json.dumps(one)) for row, one in enumerate(passages))
    attributes = Attributes(made.select, len(passages))
    texts = [f"n = {n} or s < '{n}'" for n in range(7)] * 8
    with ThreadPoolExecutor(8) as pool:
        masks = list(pool.map(attributes.where, texts))
    asked = MemoryFields.of([json.dumps(one) for one in passages])
    for text, mask in zip(texts, masks, strict=True):
        assert np.array_equal(mask, asked.where(text))


class CountedFields(dict[str, list[Value]]):
    """The fields of a row that count how often they are looked at."""

    looks = 0

    def get(self, *names: Any) -> Any:
        CountedFields.looks += 1
        return super().get(*names)


def test_in_memory_rows_are_looked_at_once_however_many_comparisons_there_are() -> None:
    rows = [CountedFields(tags=[f"t{n % 7}", f"t{n % 11}"]) for n in range(400)]
    fields = MemoryFields(rows, ["tags"])
    for text in (" or ".join(f"tags < 't{n}'" for n in range(95)), "tags != 't1'", "exists tags"):
        wanted = parse(text, 8_000)
        assert fields.where(text).tolist() == [wanted.holds(dict(row)) for row in rows]
    assert CountedFields.looks == 400


def test_a_filter_that_nobody_waits_for_ends_before_its_next_comparison(tables: Tables) -> None:
    stop = Stop()
    stop.set()
    for fields in (
        Attributes(tables.select, len(PASSAGES)),
        MemoryFields.of([json.dumps(each) for each in PASSAGES]),
    ):
        asked = tables.asked
        with pytest.raises(StoppedError):
            fields.where("year > 2000 and lang = 'en'", stop)
        assert tables.asked == asked
        assert fields.where("year > 2000 and lang = 'en'").tolist() == [True] + [False] * 3 + [True]


class StopsItself(CountedFields):
    """Fields of a row whose question is given up when they are looked at."""

    def __init__(self, stop: Stop, value: Value) -> None:
        super().__init__(n=[value])
        self._stop = stop

    def get(self, *names: Any) -> Any:
        self._stop.set()
        return super().get(*names)


def test_values_are_gathered_on_from_where_a_question_was_given_up() -> None:
    stop = Stop()
    rows = [StopsItself(stop, n) for n in range(5)]
    fields = MemoryFields(rows, ["n"])
    CountedFields.looks = 0
    with pytest.raises(StoppedError):
        fields.where("n >= 1", stop)
    assert CountedFields.looks == 1
    assert fields.where("n >= 1").tolist() == [False, True, True, True, True]
    assert CountedFields.looks == 5
