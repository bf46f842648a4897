"""BM25 over tokens."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from winnow.content_node.indexing.counting import count_words
from winnow.content_node.shard.bm25 import K1, B, BuiltRarities
from winnow.content_node.shard.manifest import WordsEntry
from winnow.content_node.shard.stored_words import load_words
from winnow.content_node.shard.words import WordIndex
from winnow.errors import ArtefactError
from winnow.files import stored_array
from winnow.files.opened import OpenFile
from winnow.files.stored_array import StoredArray
from winnow.text.rarity import rarities

PASSAGES = [[5, 5, 7], [7], [9, 2, 2, 2, 2, 2], []]
texts = st.lists(st.lists(st.integers(0, 12), max_size=9), min_size=1, max_size=8)


def match(
    passages: list[list[int]],
    question: list[int],
    rows: Sequence[int],
    counted: list[list[int]] | None = None,
) -> NDArray[np.float64]:
    """BM25 of rows, in an index in which words are as rare as in `counted`."""
    whole = counted or passages
    counts = count_words([np.array(tokens, np.uint32) for tokens in whole])
    ends = np.cumsum([len(tokens) for tokens in passages], dtype=np.int64)
    tokens = np.array([token for own in passages for token in own], np.uint16)
    built = BuiltRarities(counts.passages, len(whole), counts.tokens / len(whole))
    return WordIndex(tokens, ends).bm25_scores(built.terms_of_tokens(question), rows)


def opened(directory: Path) -> dict[str, OpenFile]:
    return {path.name: OpenFile(path) for path in directory.iterdir()}


def by_hand(question: list[int], passage: list[int], passages: list[list[int]]) -> float:
    mean = max(sum(map(len, passages)) / len(passages), 1)
    total = 0.0
    for word in set(question):
        having = sum(word in other for other in passages)
        rarity = math.log(1 + (len(passages) - having + 0.5) / (having + 0.5))
        count = passage.count(word)
        total += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * len(passage) / mean))
    return total


@given(texts, st.lists(st.integers(0, 20), max_size=6))
def test_the_score_is_bm25(passages: list[list[int]], question: list[int]) -> None:
    rows = list(reversed(range(len(passages))))
    found = match(passages, question, rows)
    assert found == pytest.approx([by_hand(question, passages[row], passages) for row in rows])


@given(texts, st.lists(st.integers(0, 20), max_size=6))
def test_a_match_is_worth_the_same_on_every_shard(
    passages: list[list[int]], question: list[int]
) -> None:
    whole = match(passages, question, range(len(passages)))
    for first in (0, 1):
        shard = passages[first::2]
        cut = match(shard, question, range(len(shard)), passages)
        assert cut.tolist() == whole[first::2].tolist()


def test_rare_words_count_for_more_than_frequent_ones() -> None:
    found = match(PASSAGES, [7, 9], [1, 2, 3])
    assert found[1] > found[0] > found[2] == 0


def test_tokens_that_no_passage_has_are_worth_nothing() -> None:
    assert match(PASSAGES, [3, 10**6], [0, 3]).tolist() == [0, 0]
    assert match(PASSAGES, [], [0]).tolist() == [0]
    assert match(PASSAGES, [5], []).tolist() == []


def test_a_shard_has_more_tokens_than_were_counted_only_where_it_has_grown(tmp_path: Path) -> None:
    entry = WordsEntry(tokens="t.npy", ends="e.npy", frequencies="f.npy", index_tokens=2)
    np.save(tmp_path / "t.npy", np.array([1, 2, 900], np.uint16))
    np.save(tmp_path / "e.npy", np.array([1, 1, 3]))
    np.save(tmp_path / "f.npy", np.array([0, 1, 1], np.uint32))
    with pytest.raises(ArtefactError, match="that the index has 2: build the index again"):
        load_words(opened(tmp_path), entry, 3, 2, has_writes=False)
    words, built = load_words(opened(tmp_path), entry, 3, 2, has_writes=True)
    assert words.lengths.tolist() == [1, 0, 2]
    unknown = words.bm25_scores(built.terms_of_tokens([900]), [0, 1, 2])
    assert (
        unknown[2]
        > words.bm25_scores(built.terms_of_tokens([2]), [2])[0]
        > unknown[0]
        == unknown[1]
        == 0
    )


def test_rarities_of_a_question_replace_the_counted_ones() -> None:
    built = BuiltRarities(np.array([1, 2, 3]), 4, 10.0)
    terms = built.terms_of_tokens([2, 1, 2], [0.5, 0.25, 0.5], 7.0)
    assert terms.ids.tolist() == [1, 2]
    assert terms.rarities.tolist() == [0.25, 0.5]
    assert terms.mean_length == 7.0
    assert built.terms_of_tokens([2, 1]).mean_length == 10.0


@pytest.mark.parametrize("torn", ["tokens.npy", "ends.npy", "frequencies.npy"])
def test_damaged_files_are_refused(torn: str, tmp_path: Path) -> None:
    entry = WordsEntry(
        tokens="tokens.npy", ends="ends.npy", frequencies="frequencies.npy", index_tokens=3
    )
    np.save(tmp_path / "tokens.npy", np.array([1, 2, 3], np.uint16))
    np.save(tmp_path / "ends.npy", np.array([1, 3]))
    np.save(tmp_path / "frequencies.npy", np.array([0, 1, 1, 1], np.uint32))
    words, built = load_words(opened(tmp_path), entry, 2, 2, has_writes=False)
    assert words.bm25_scores(built.terms_of_tokens([2]), [0, 1]).argmax() == 1
    (tmp_path / torn).write_bytes(b"x")
    with pytest.raises(ArtefactError, match=f"{torn} (cannot be loaded|holds no array)"):
        load_words(opened(tmp_path), entry, 2, 2, has_writes=False)


def test_words_of_other_passages_are_refused(tmp_path: Path) -> None:
    entry = WordsEntry(tokens="t.npy", ends="e.npy", frequencies="f.npy", index_tokens=3)
    for name, values in (("t", [1, 2, 3]), ("e", [1, 3]), ("f", [0, 1, 1, 1])):
        np.save(tmp_path / f"{name}.npy", np.array(values, np.uint32))
    with pytest.raises(ArtefactError, match="the manifest says 3 rows"):
        load_words(opened(tmp_path), entry, 3, 3, has_writes=False)


def test_tokens_on_disk_are_read_as_they_would_be_from_memory(tmp_path: Path) -> None:
    values = np.arange(100, dtype=np.uint16)
    np.save(tmp_path / "t.npy", values)
    stored = StoredArray(OpenFile(tmp_path / "t.npy"))
    assert len(stored) == 100
    for place in (slice(0, 0), slice(0, 100), slice(17, 40), slice(100, 100)):
        assert stored[place].tolist() == values[place].tolist()


@pytest.mark.parametrize(
    "values", [np.zeros((2, 2), np.uint16), np.zeros(2), np.zeros(2, np.int16), np.array("x")]
)
def test_another_array_than_a_row_of_tokens_is_refused(
    values: NDArray[np.generic], tmp_path: Path
) -> None:
    np.save(tmp_path / "t.npy", values)
    with pytest.raises(ArtefactError, match=r"t\.npy holds"):
        StoredArray(OpenFile(tmp_path / "t.npy"))


def test_no_two_threads_parse_the_headers_of_arrays_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards are loaded in several threads, and Python 3.11.7 may fail to parse literals in two."""
    parse, alone = stored_array._HEADERS[1, 0], []

    def observe(reader: Any) -> Any:
        alone.append(stored_array._PARSING.locked())
        return parse(reader)

    monkeypatch.setitem(stored_array._HEADERS, (1, 0), observe)
    np.save(tmp_path / "t.npy", np.arange(3, dtype=np.uint16))
    file = OpenFile(tmp_path / "t.npy")
    assert stored_array.read_integers(file).tolist() == [0, 1, 2]
    assert StoredArray(file)[slice(0, 3)].tolist() == [0, 1, 2]
    assert alone == [True, True]


def test_a_token_is_as_rare_bit_for_bit_in_any_question() -> None:
    """Shards and fronts compute rarities of different tokens together."""
    frequencies = np.array([0, 1, 2, 3, 255, 256, 70_000, 69_999, 12, 1], np.int64)
    built = BuiltRarities(frequencies, 70_000, 9.0)
    every = rarities(np.append(frequencies, 0), 70_000)
    for size in range(1, len(every) + 1):
        terms = built.terms_of_tokens(range(size))
        assert terms.rarities.tolist() == every[:size].tolist()
    beyond = built.terms_of_tokens([2, 2**32 - 1])
    assert beyond.rarities.tolist() == [every[2], every[0]]
