"""The canonical form of a passage: which passages are the same."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.convert.feed import passage_to_message, passages_of_message
from winnow.domain.passage import Passage
from winnow.domain.write import FedPassage
from winnow.passages.canonical import canonical, digest, same_content
from winnow.passages.formats import parser
from winnow.v1 import feed_pb2

PATH = Path("rows.jsonl")
VALUES = st.one_of(st.text(max_size=5), st.booleans(), st.integers(), st.floats(-1e300, 1e300))
METADATA = st.dictionaries(st.text(min_size=1, max_size=5), VALUES | st.lists(VALUES), max_size=4)


def passage(metadata: str = "", **fields: str) -> Passage:
    return Passage(**{"id": "a", "title": "T", "text": "words", **fields}, metadata=metadata)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'),
        ('{"a": {"c": 1, "b": [1, 2]}}', '{"a":{"b":[1.0,2],"c":1}}'),
        ('{"a": 1}', '{"a": 1.0}'),
        ('{"a": 0}', '{"a": -0.0}'),
        ('{"a": 1e3}', '{"a": 1000}'),
        ('{"a": "é"}', '{"a": "\\u00e9"}'),
        ('{"a": 9007199254740993}', '{"a": 9007199254740992}'),  # one double
        ("", "{}"),
    ],
)
def test_passages_that_differ_only_in_notation_are_the_same(one: str, other: str) -> None:
    assert same_content(passage(one), passage(other))
    assert digest(passage(one)) == digest(passage(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1}', '{"a": true}'),
        ('{"a": 1}', '{"a": "1"}'),
        ('{"a": [1, 2]}', '{"a": [2, 1]}'),
        ('{"a": 1}', '{"a": 1, "b": 1}'),
        ('{"a": null}', "{}"),
    ],
)
def test_passages_with_other_values_are_not_the_same(one: str, other: str) -> None:
    assert not same_content(passage(one), passage(other))
    assert digest(passage(one)) != digest(passage(other))


@pytest.mark.parametrize("field", ["id", "title", "text"])
def test_every_field_counts(field: str) -> None:
    other = passage(**{field: "other"})
    assert not same_content(passage(), other)
    assert digest(passage()) != digest(other)


def test_text_that_moves_to_another_field_makes_another_passage() -> None:
    assert digest(passage(title="ab", text="c")) != digest(passage(title="a", text="bc"))


@given(METADATA)
def test_a_row_that_is_built_has_the_metadata_of_one_that_is_fed(
    metadata: dict[str, object],
) -> None:
    """A file of rows says the same to `index build` and, by a message, to a front."""
    line = json.dumps({"id": "a", "text": "words", "metadata": metadata})
    built = parser(PATH)(1, line)
    assert built is not None
    message = passage_to_message(
        FedPassage(id="a", title="", text="words", metadata=json.loads(line)["metadata"])
    )
    (fed,) = passages_of_message(feed_pb2.PutRequest(passages=[message]))
    assert canonical(built) == canonical(fed)


def test_the_digest_follows_the_contract() -> None:
    """Nodes and fronts of different versions compare digests: another form needs another name."""
    found = digest(Passage("a", "T", "words", '{"b": 2.0, "a": "\u00e9"}'))
    assert found.hex() == "d0b9cbe8a4672b3a49dbca074a77265caad47e8f3e60fdd654c2c0fab34e2a8d"
