"""Which passages and deletions are valid, and how every fault is named."""

from typing import Any

import pytest

from winnow.domain.write import Deletion, FedPassage
from winnow.errors import InvalidRequestError
from winnow.passages.validation import MAX_METADATA
from winnow.stateless.feed.validation import (
    MAX_DELETIONS,
    MAX_PASSAGES,
    validate_deletions,
    validate_puts,
)


def fed(**changed: Any) -> FedPassage:
    return FedPassage(**{"id": "a", "title": "T", "text": "words", **changed})


def faults(*passages: FedPassage) -> list[tuple[str, str]]:
    with pytest.raises(InvalidRequestError) as caught:
        validate_puts(passages)
    return [(each.field, each.description) for each in caught.value.violations]


def test_a_passage_is_taken_as_it_is() -> None:
    metadata = {"year": 2015, "tags": ["b", "a"], "done": True, "share": 0.5}
    (put,) = validate_puts([fed(metadata=metadata, version=7)])
    assert (put.passage.id, put.passage.title, put.passage.text) == ("a", "T", "words")
    assert put.passage.metadata == (
        '{"done": true, "share": 0.5, "tags": ["b", "a"], "year": 2015}'
    )
    assert put.version == 7


def test_a_passage_needs_no_title_and_no_metadata() -> None:
    (put,) = validate_puts([fed(title="")])
    assert (put.passage.title, put.passage.metadata, put.version) == ("", "", None)


def test_the_order_of_names_makes_no_other_metadata() -> None:
    one, other = validate_puts([fed(metadata={"a": 1, "b": 2}), fed(metadata={"b": 2, "a": 1})])
    assert one.passage == other.passage


def test_several_passages_with_one_id_are_kept_in_their_order() -> None:
    texts = [put.passage.text for put in validate_puts([fed(text="old"), fed(text="new")])]
    assert texts == ["old", "new"]


@pytest.mark.parametrize(
    ("changed", "field", "said"),
    [
        ({"id": ""}, "id", "is empty: give an id of 1 to 256 characters"),
        ({"id": " "}, "id", "is empty"),
        ({"id": "a" * 257}, "id", "has 257 characters, at most 256 are allowed: shorten it"),
        ({"id": "a\nb"}, "id", "'a?b' has a control character"),
        ({"title": "a" * 1_001}, "title", "has 1001 characters, at most 1000"),
        ({"text": ""}, "text", "is empty: a passage needs a text"),
        ({"text": " \n"}, "text", "is empty"),
        (
            {"text": "a" * 10_001},
            "text",
            "at most 10000 are allowed: cut it into passages, as --cut does",
        ),
        ({"version": 2**63}, "version", "9223372036854775808 is more than 9223372036854775807"),
        ({"metadata": {"": 1}}, "metadata", "'' is not a name of 1 to 100 characters"),
        ({"metadata": {"a" * 101: 1}}, "metadata", "is not a name of 1 to 100 characters"),
        (
            {"metadata": {"a": float("nan")}},
            "metadata",
            "'a' has a number that is infinite or too large",
        ),
        (
            {"metadata": {"a": [float("inf")]}},
            "metadata",
            "'a' has a number that is infinite or too large",
        ),
        (
            {"metadata": {"a": {"b": 10**400}}},
            "metadata",
            "'a' has a number that is infinite or too large",
        ),
        ({"metadata": {"a": "b" * MAX_METADATA}}, "metadata", "store less metadata"),
    ],
)
def test_a_broken_rule_is_named_with_its_place(
    changed: dict[str, Any], field: str, said: str
) -> None:
    ((named, description),) = faults(fed(), fed(), fed(), fed(**changed))
    assert named == f"passages[3].{field}"
    assert said in description


def test_everything_that_breaks_a_rule_is_named_and_the_rest_is_counted() -> None:
    named = faults(fed(id="", text=""), fed(title="a" * 2_000))
    assert [field for field, _ in named] == [
        "passages[0].id",
        "passages[0].text",
        "passages[1].title",
    ]
    many = faults(*[fed(text="")] * 20)
    assert many[-1] == ("request", "has 4 more invalid fields")


@pytest.mark.parametrize("count", [0, MAX_PASSAGES + 1])
def test_a_request_has_some_passages_and_not_too_many(count: int) -> None:
    ((field, _),) = faults(*[fed()] * count)
    assert field == "passages"


def test_deletions_are_checked_alike() -> None:
    valid = [Deletion("a"), Deletion("a" * 512, 3)]
    assert validate_deletions(valid) == valid
    for wrong in ([], [Deletion("a")] * (MAX_DELETIONS + 1)):
        with pytest.raises(InvalidRequestError, match="deletions: "):
            validate_deletions(wrong)
    with pytest.raises(InvalidRequestError) as caught:
        validate_deletions([Deletion("a"), Deletion(""), Deletion("b" * 513), Deletion("c", 2**63)])
    assert [each.field for each in caught.value.violations] == [
        "deletions[1].id",
        "deletions[2].id",
        "deletions[3].version",
    ]
