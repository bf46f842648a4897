"""Counts of words of an index that changes."""

import numpy as np
import pytest
from fakes import FINGERPRINT
from hypothesis import given
from hypothesis import strategies as st
from logged_shards import Content, LiveReplica, ShardLog, Words, counted

from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion
from winnow.domain.shard import shard_of
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.errors import WinnowError
from winnow.text.index_counts import IndexCounts, have_same_counts
from winnow.text.rarity import mean_length, rarities

EVERY = tuple(range(64))
ASKED = EncodedQuestion(
    text="who", token_ids=EVERY, vector=np.zeros(2, np.float32), bundle_fingerprint=FINGERPRINT
)
NAMES = st.sampled_from("abcdef")
WORDS = st.lists(st.integers(0, 63), min_size=1, max_size=5).map(tuple)
HISTORY = st.lists(st.tuples(NAMES, st.none() | WORDS), max_size=25)


def weights(counts: IndexCounts) -> tuple[tuple[float, ...], float]:
    weighed = counts.weigh(ASKED)
    return weighed.rarities, weighed.mean_length


async def told(
    built: Content, history: list[tuple[str, Words | None]], shards: int
) -> tuple[dict[str, Words], IndexCounts]:
    """What an index of some shards holds after a history, and how its words are counted."""
    index = counted(built)
    logs = [
        ShardLog({n: w for n, w in built.items() if shard_of(n, shards) == shard})
        for shard in range(shards)
    ]
    for name, words in history:
        log = logs[shard_of(name, shards)]
        log.delete(name) if words is None else log.put(name, words)
    replicas = [LiveReplica("x", log, index=index) for log in logs]
    for each in replicas:
        each.follow()
    changes = [await each.changes(Deadline.after(60)) for each in replicas]
    held = {
        name: entry.words
        for log in logs
        for name, entry in log.content(log.sequence).items()
        if entry.words is not None
    }
    return held, IndexCounts.of(index, changes)


@given(st.dictionaries(NAMES, WORDS), HISTORY, st.integers(1, 4))
async def test_for_a_fixed_content_words_weigh_the_same_over_any_cut_and_any_history(
    built: dict[str, Words], history: list[tuple[str, Words | None]], shards: int
) -> None:
    content, counts = await told(built, history, shards)
    recounted = IndexCounts.of(counted(content), [])
    assert weights(counts) == weights(recounted)
    assert (counts.passages, counts.tokens) == (recounted.passages, recounted.tokens)


@given(st.dictionaries(NAMES, WORDS, min_size=1))
def test_words_weigh_bit_for_bit_what_a_shard_would_say_of_them(built: dict[str, Words]) -> None:
    """A shard calculates all of its vocabulary at once, a front the words of a question."""
    index = counted(built)
    whole = rarities(np.append(index.passages.astype(np.int64), 0), index.total)
    expected = tuple(float(whole[min(token, index.vocabulary)]) for token in EVERY)
    said, length = weights(IndexCounts.of(index, []))
    assert said == expected
    assert length == mean_length(index.tokens, index.total)


def test_an_index_of_which_everything_was_deleted_has_a_length_and_no_word_of_infinite_worth() -> (
    None
):
    gone = WordChanges(
        sequence=1,
        ids=np.array([3], np.uint32),
        by=np.array([-1], np.int32),
        passages=-1,
        tokens=-1,
    )
    said, length = weights(IndexCounts.of(counted({"a": (3,)}), [gone]))
    assert length == 1.0
    assert all(0 <= each < 9 for each in said)


@pytest.mark.parametrize(
    "change",
    [
        WordChanges(
            sequence=1,
            ids=np.array([3], np.uint32),
            by=np.array([-2], np.int32),
            passages=0,
            tokens=0,
        ),
        WordChanges(
            sequence=1,
            ids=np.array([3], np.uint32),
            by=np.array([2], np.int32),
            passages=1,
            tokens=2,
        ),
        WordChanges(
            sequence=1,
            ids=np.array([], np.uint32),
            by=np.array([], np.int32),
            passages=0,
            tokens=-9,
        ),
        WordChanges(
            sequence=1,
            ids=np.array([4, 3], np.uint32),
            by=np.array([1, 1], np.int32),
            passages=1,
            tokens=2,
        ),
        WordChanges(
            sequence=1,
            ids=np.array([2**32 - 1], np.uint32),
            by=np.array([1], np.int32),
            passages=1,
            tokens=1,
        ),
    ],
    ids=["less than none", "more than all", "negative length", "no order", "no token"],
)
def test_what_cannot_be_is_refused(change: WordChanges) -> None:
    with pytest.raises(WinnowError, match="inconsistent document frequencies"):
        IndexCounts.of(counted({"a": (3,)}), [change])


def test_counts_are_the_same_only_if_every_figure_is() -> None:
    one = counted({"a": (3, 4)})
    assert have_same_counts(one, counted({"b": (4, 3)}))
    assert not have_same_counts(one, counted({"a": (3, 5)}))
    assert not have_same_counts(one, WordCounts(one.passages, one.tokens + 1, one.total))
