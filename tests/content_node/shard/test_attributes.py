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

from content_node.shard.attribute_tables import AttributesInMemory, write_attributes
from content_node.shard.attributes import Attributes
from content_node.shard.passage_fields import PassageFields
from winnow.errors import ArtefactError, InvalidRequestError
from winnow.filtering import Filter, Value, fields_of, parse

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
    asked = PassageFields([json.dumps(one) if one else "" for one in passages])
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
        PassageFields([]).where("year >")


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
    asked = PassageFields([json.dumps(one) for one in passages])
    for text, mask in zip(texts, masks, strict=True):
        assert np.array_equal(mask, asked.where(text))
