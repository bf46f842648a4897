"""What filters let through, as tables."""

from typing import Any

import pytest

from winnow.filtering import fields_of, parse

FILM: dict[str, Any] = {
    "year": 2012,
    "lang": "en",
    "tags": ["drama", "sea"],
    "rating": 7.5,
    "published": "2015-03-01",
    "draft": False,
    "note": None,
    "none": [],
    "author": {"name": "Ann", "born": 1970},
    "cast": [{"name": "Bo"}, {"name": "Cy", "age": 40}],
    "odd name": 1,
    "mixed": [1, "1", True],
}
TRUE = [
    "year = 2012",
    "year = 2012.0",
    "year >= 2010 and lang = 'en'",
    'year>=2010 AND lang="en"',
    "year < 2012.5",
    "tags = 'sea'",
    "tags != 'sea'",
    'tags in ("x", "drama")',
    'tags not in ("x", "y")',
    "not tags = 'x'",
    "published >= '2015-03-01' and published < '2015-03-02'",
    "published > '2015-02-28T23:59:59'",
    "draft = false",
    "not (draft = true)",
    "exists year",
    "not exists note",
    "not exists none",
    "not exists author",
    "author.name = 'Ann'",
    "'author.born' = 1970",
    "cast.name = 'Bo' and cast.name = 'Cy'",
    "cast.age = 40",
    "'odd name' = 1",
    "mixed = 1 and mixed = '1' and mixed = true",
    "lang = 'de' or year = 2012 and draft = false",
    "not lang = 'de' and year = 2012",
    "not not lang = 'en'",
    "year != 2013",
    "year != '2012'",
]
FALSE = [
    "year = '2012'",
    "year > '2000'",
    "year < '3000'",
    "draft = 0",
    "draft < 1",
    "draft >= 0",
    "lang = 'EN'",
    "missing = 1",
    "missing != 1",
    "missing < 1",
    "exists missing",
    "note = 0",
    "note != 0",
    "none != 0",
    "author = 'Ann'",
    "tags in ('x', 'y')",
    "tags not in ('sea')",
    "tags = 'drama' and not tags = 'sea'",
    "(lang = 'de' or year = 2012) and draft = true",
    "not (lang = 'en' or year = 1)",
    "mixed != 1 and mixed = 2",
]


@pytest.mark.parametrize("text", TRUE)
def test_filters_that_accept_the_film(text: str) -> None:
    assert parse(text).matches(FILM)


@pytest.mark.parametrize("text", FALSE)
def test_filters_that_refuse_the_film(text: str) -> None:
    assert not parse(text).matches(FILM)


def test_a_passage_without_metadata_has_no_field() -> None:
    assert fields_of({}) == {}
    assert not parse("year = 1").matches({})
    assert parse("not year = 1").matches({})


def test_objects_are_paths_and_lists_are_several_values() -> None:
    found = fields_of({"a": {"b": [1, [2, {"c": "x"}]]}, "a.b": True})
    assert {name: sorted(map(str, values)) for name, values in found.items()} == {
        "a.b": ["1.0", "2.0", "True"],
        "a.b.c": ["x"],
    }


def test_numbers_are_double_precision_and_nan_is_no_value() -> None:
    assert fields_of({"n": 2**53 + 1}) == fields_of({"n": 2**53}) == {"n": [2.0**53]}
    assert fields_of({"n": float("nan")}) == {}
    assert fields_of({"n": -(10**400)}) == {"n": [float("-inf")]}


def test_a_name_longer_than_any_filter_is_no_field_at_any_depth() -> None:
    deep: dict[str, Any] = {"x": 1}
    for _ in range(500):
        deep = {"deeper": deep}
    assert fields_of({"n" * 201: 1, "deep": deep, "year": 1}) == {"year": [1.0]}
