"""Building and feeding take the same passages, and refuse the same ones for the same reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from winnow.convert.feed import passages_of_message
from winnow.domain.write import Deletion, FedPassage
from winnow.errors import InvalidRequestError
from winnow.passages.rows import BadRow, Row, read_rows
from winnow.passages.validation import (
    MAX_DELETED_ID,
    MAX_ID,
    MAX_METADATA,
    MAX_TEXT,
    MAX_TITLE,
    deletion_violations,
    passage_violations,
)
from winnow.stateless.feed.validation import validate_puts
from winnow.v1 import feed_pb2

PASSAGE = {"id": "a", "title": "T", "text": "words", "metadata": {"year": 2015}, "version": 3}
LONGEST = "m" * (MAX_METADATA - len('{"a": ""}'))


def built(passage: dict[str, Any], path: Path) -> Row | BadRow:
    path.write_text(json.dumps(passage) + "\n")
    (row,) = read_rows(path)
    return row


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"id": "i" * MAX_ID},
        {"title": "t" * MAX_TITLE},
        {"text": "x" * MAX_TEXT},
        {"metadata": {"a": LONGEST}},
        {"metadata": {"author": {"name": "Ann", "born": None}, "tags": [["a"], {"b": 1.0}]}},
    ],
)
def test_a_valid_passage_is_built_and_fed_in_one_form(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    passage = {**PASSAGE, **changed}
    row = built(passage, tmp_path / "p.jsonl")
    assert isinstance(row, Row)
    assert [row.put] == validate_puts([FedPassage(**passage)])


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "i" * (MAX_ID + 1)},
        {"title": "t" * (MAX_TITLE + 1)},
        {"text": "x" * (MAX_TEXT + 1)},
        {"text": " "},
        {"metadata": {"a": LONGEST + "m"}},
        {"metadata": {"": 1}},
        {"metadata": {"a": 10**400}},
        {"id": "a\u0000", "title": "\ud800"},
    ],
)
def test_a_wrong_passage_is_refused_by_both_with_the_same_words(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    passage = {**PASSAGE, **changed}
    row = built(passage, tmp_path / "p.jsonl")
    assert isinstance(row, BadRow)
    with pytest.raises(InvalidRequestError) as caught:
        validate_puts([FedPassage(**passage)])
    for wrong in caught.value.violations:
        assert f"{wrong.field.removeprefix('passages[0].')} {wrong.description}" in row.reason


def test_a_passage_with_a_longer_id_than_can_be_fed_can_be_deleted() -> None:
    """An earlier version may have built it."""
    assert not list(deletion_violations(Deletion("i" * MAX_DELETED_ID)))
    assert list(deletion_violations(Deletion("i" * (MAX_DELETED_ID + 1))))


@pytest.mark.parametrize("levels", [20, 400])
def test_deep_metadata_is_refused_for_its_depth(levels: int) -> None:
    """JSON allows more levels than a recursion."""
    request = feed_pb2.PutRequest(passages=[feed_pb2.FedPassage(id="1", text="words")])
    inner = request.passages[0].metadata
    for _ in range(levels):
        inner = inner.fields["a"].struct_value
    inner.fields["a"].bool_value = True
    (passage,) = passages_of_message(request)
    (violation,) = passage_violations(passage)
    assert violation.description == "'a' is nested deeper than 20 levels"
