"""The best passages by words: the same as by scoring every passage."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shards_made
from hypothesis import given
from hypothesis import strategies as st

from winnow.content_node.shard import open_shard
from winnow.content_node.shard.bm25 import BuiltRarities, Terms
from winnow.content_node.shard.inverting import invert
from winnow.content_node.shard.manifest import SHARD_FILE, read_shard_manifest, write_manifest
from winnow.content_node.shard.postings import Postings
from winnow.content_node.shard.rows import RowList, RowMask
from winnow.content_node.shard.saving import file_entry
from winnow.content_node.shard.words import WordIndex
from winnow.errors import ArtefactError, StoppedError
from winnow.inference.stop_signal import StopSignal

texts = st.lists(st.lists(st.integers(0, 12), max_size=9), max_size=30)
rarities = st.lists(st.sampled_from([0.0, 0.1, 0.2, 3.0, 5.0]), min_size=6, max_size=6)


def arrays(passages: list[list[int]]) -> tuple[Any, Any]:
    tokens = np.array([token for own in passages for token in own], np.uint16)
    return tokens, np.cumsum([len(own) for own in passages], dtype=np.int64)


def by_hand(
    passages: list[list[int]], terms: Terms, k: int, allowed: RowMask
) -> list[tuple[int, float]]:
    scores = WordIndex(*arrays(passages)).bm25_scores(terms, range(len(passages))).tolist()
    found = [(row, score) for row, score in enumerate(scores) if score > 0 and allowed[row]]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    least = np.float32(found[k - 1][1]) if len(found) > k else 0
    return [pair for pair in found if np.float32(pair[1]) >= least]


@given(
    texts,
    st.lists(st.integers(0, 14), min_size=6, max_size=6),
    rarities,
    st.integers(1, 9),
    st.data(),
)
def test_the_best_rows_are_bit_for_bit_those_of_scoring_every_passage(
    passages: list[list[int]],
    asked: list[int],
    rare: list[float],
    k: int,
    data: st.DataObject,
) -> None:
    """Postings are skipped only if they cannot matter."""
    terms = BuiltRarities(np.zeros(1, np.int64), 1, 1.0).terms_of_tokens(asked, rare, 4.0)
    mask = data.draw(st.lists(st.booleans(), min_size=len(passages), max_size=len(passages)))
    postings = Postings.from_tokens(*arrays(passages))
    allowed = np.array(mask, np.bool_)
    everything = np.ones(len(passages), np.bool_)
    others = (
        data.draw(st.lists(st.sampled_from(np.flatnonzero(mask).tolist()), unique=True))
        if any(mask)
        else []
    )
    scores = WordIndex(*arrays(passages)).bm25_scores(terms, others).tolist()
    best, scores_of_others = postings.best(terms, k, allowed, others=others)
    assert best == by_hand(passages, terms, k, allowed)
    assert scores_of_others.tolist() == scores
    listed = RowList(np.flatnonzero(allowed))
    best, scores_of_others = postings.best(terms, k, listed, others=others)
    assert best == by_hand(passages, terms, k, allowed)
    assert scores_of_others.tolist() == scores
    counts = [sum(token in passages[row] for row in listed.rows) for token in terms.ids.tolist()]
    assert postings.frequencies_among(terms.ids, listed).tolist() == counts
    assert postings.best(terms, k)[0] == by_hand(passages, terms, k, everything)


@given(texts)
def test_every_token_leads_to_its_rows(passages: list[list[int]]) -> None:
    made = invert(*arrays(passages))
    for token in range(len(made.starts) - 1):
        part = slice(made.starts[token], made.starts[token + 1])
        found = dict(zip(made.rows[part].tolist(), made.counts[part].tolist(), strict=True))
        assert found == {row: own.count(token) for row, own in enumerate(passages) if token in own}
    assert len(made.rows) == sum(len(set(own)) for own in passages)


def test_frequent_words_count_also_where_rare_ones_decide_who_is_found() -> None:
    passages = [[1, 2] if row % 100 == 0 else [1] for row in range(1_000)]
    terms = Terms(np.array([1, 2]), np.array([0.01, 5.0]), 2.0)
    found = Postings.from_tokens(*arrays(passages)).best(terms, 5)[0]
    assert [row for row, _ in found] == list(range(0, 1_000, 100))  # all are as good
    assert found == by_hand(passages, terms, 5, np.ones(1_000, np.bool_))
    only_rare = Terms(np.array([2]), np.array([5.0]), 2.0)
    assert found[0][1] > Postings.from_tokens(*arrays(passages)).best(only_rare, 5)[0][0][1]


def test_each_of_several_frequent_words_can_overtake_the_rare_words_leaders() -> None:
    # the rare word alone prefers the short passages: those without the frequent ones
    rare, others = 3, [1, 2, 4]
    passages = [[rare], [rare, 1], [rare, 1, 2], [rare, *others], *([others] * 200)]
    terms = Terms(np.array([1, 2, 3, 4]), np.array([0.4, 0.4, 5.0, 0.4]), 4.0)
    for k in range(1, 5):
        found = Postings.from_tokens(*arrays(passages)).best(terms, k)[0]
        assert [row for row, _ in found] == [3, 2, 1, 0][:k]
        assert found == by_hand(passages, terms, k, np.ones(len(passages), np.bool_))


def test_searching_ends_when_it_is_stopped() -> None:
    stop = StopSignal()
    stop.set()
    terms = Terms(np.array([1]), np.array([1.0]), 2.0)
    with pytest.raises(StoppedError):
        Postings.from_tokens(*arrays([[1]])).best(terms, 1, stop=stop)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("postings.npy", lambda rows: rows[::-1].copy(), "not in order, or not below"),
        ("postings.npy", lambda rows: rows + np.uint32(9), "not in order, or not below"),
        ("postings.npy", lambda rows: rows[1:].copy(), "rows and"),
        ("counts.npy", lambda counts: counts[1:].copy(), "rows and"),
        ("starts.npy", lambda starts: starts + 1, "not in order"),
        ("starts.npy", lambda starts: starts[::-1].copy(), "not in order"),
        ("starts.npy", lambda starts: starts[:0].copy(), "not in order"),
    ],
)
def test_impossible_postings_are_refused(tmp_path: Path, name: str, values: Any, said: str) -> None:
    directory = tmp_path / "shard"
    shards_made.make(directory, shards_made.passages(9))
    np.save(directory / name, values(np.load(directory / name)))
    manifest = read_shard_manifest(directory)
    files = {**manifest.files, name: file_entry(directory / name)}
    write_manifest(directory / SHARD_FILE, manifest.model_copy(update={"files": files}))
    with pytest.raises(ArtefactError, match=said):
        open_shard(directory, 64)


@pytest.mark.parametrize("filtered", [False, True])
def test_many_rows_are_found_as_by_scoring_every_passage(filtered: bool) -> None:
    """Frequent words are tables, and groups of rows bound the best score."""
    chance = np.random.default_rng(7)
    passages = [(chance.zipf(1.3, 40) % 500).tolist() for _ in range(2_000)]
    allowed = chance.random(len(passages)) < 0.3 if filtered else np.ones(len(passages), np.bool_)
    postings = Postings.from_tokens(*arrays(passages))
    built = BuiltRarities(postings.frequencies, len(passages), 40.0)
    for _ in range(20):
        terms = built.terms_of_tokens([1, 2, *(chance.zipf(1.3, 8) % 500).tolist()])
        found = postings.best(terms, 20, allowed if filtered else None)[0]
        assert found == by_hand(passages, terms, 20, allowed)
        assert postings.best(terms, 20, RowList(np.flatnonzero(allowed)))[0] == found
