"""Which fields filters may name, as tables."""

import pytest
from fakes import shard_info

from winnow.domain.shard import MAX_FIELDS, ShardInfo
from winnow.errors import InvalidRequestError
from winnow.rpc.status import rich_status
from winnow.stateless.answer.fields import fields_of_index, unknown_fields


def info(*fields: str, generation: str = "rows") -> ShardInfo:
    return shard_info(generation=generation, fields=fields)


def said(name: str, known: set[str]) -> str:
    (violation,) = unknown_fields([name], known)
    assert violation.field == "filter"
    return violation.description


def test_a_field_that_one_shard_has_is_one() -> None:
    infos = [info("a"), info("b", "c"), info()]
    assert fields_of_index(infos) == frozenset({"a", "b", "c"})
    assert not list(unknown_fields(["a", "c"], {"a", "b", "c"}))


def test_the_fields_of_a_shard_that_was_never_heard_of_are_not_known() -> None:
    assert fields_of_index([info("a"), info("a", generation="")]) is None


def test_a_shard_that_tells_as_many_as_it_may_has_perhaps_more() -> None:
    many = [f"f{n}" for n in range(MAX_FIELDS)]
    assert fields_of_index([info("a"), info(*many)]) is None
    assert fields_of_index([info("a"), info(*many[1:])]) is not None


def test_the_nearest_spelling_comes_first() -> None:
    assert said("yaer", {"lang", "year", "tags"}).startswith(
        "there is no field 'yaer': known are year, "
    )


def test_of_many_fields_twenty_are_named_and_the_others_counted() -> None:
    known = {f"field{n}" for n in range(1_500)} | {"publisher", "published"}
    description = said("publishd", known)
    assert description.startswith("there is no field 'publishd': known are published, publisher, ")
    assert description.endswith(" and 1482 more")
    assert description.count(",") == 19


def test_names_that_are_long_or_strange_are_quoted_in_part() -> None:
    description = said("\x1b" * 300, {"\n" * 200, "b"})
    assert "\x1b" not in description
    assert "\n" not in description
    assert len(description) < 500


@pytest.mark.parametrize("letter", ["a", "é", "中", "\U0001f600"])
def test_an_error_that_names_long_fields_can_be_sent(letter: str) -> None:
    known = [letter * 190 + str(number) for number in range(30)]
    error = InvalidRequestError(*unknown_fields([letter * 200], known))
    (violation,) = error.violations
    assert "known are " + letter in violation.description
    assert violation.description.endswith(" more")
    sent = rich_status(error)
    details = sum(len(value) for _, value in sent.trailing_metadata)
    assert details + 3 * len(sent.details.encode()) < 7_000
