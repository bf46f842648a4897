"""The reader, prepared and decoded around the real model, and around a scripted one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.bundle.manifest import ScoreEntry
from winnow.domain.passage import Hit, Passage
from winnow.errors import ArtefactError
from winnow.inference.options import InferenceOptions
from winnow.inference.stop_signal import StopSignal
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.reading import Reader, open_reader
from winnow.reading.cross_encoder import CrossEncoder, build_windows
from winnow.reading.model import max_question_tokens
from winnow.reading.reader import combine_scores
from winnow.reading.stored_passage import StoredPassage
from winnow.text.tokenizer import SpecialTokens, Tokenizer

SPECIAL = SpecialTokens(101, 102)

HIT = Hit(row=0, passage_id="", distance=0.5, hybrid_distance=0.4)


def stored(tokenizer: Tokenizer, title: str, text: str) -> StoredPassage:
    return StoredPassage(
        Passage("p", title, text), tokenizer.tokenise(title).ids, tokenizer.tokenise(text)
    )


def test_a_sequence_is_question_title_and_passage_without_padding(bundle: Bundle) -> None:
    (window,) = build_windows((1, 2), (3,), (4, 5, 6), SPECIAL, bundle.manifest.reader)
    assert window.ids == [101, 1, 2, 102, 3, 102, 4, 5, 6, 102]
    assert window.types == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert window.ids[window.offset : window.offset + window.length] == [4, 5, 6]


def test_long_passages_are_read_in_windows_that_fit(bundle: Bundle) -> None:
    entry = bundle.manifest.reader
    found = build_windows((1,) * 62, (3,) * 500, tuple(range(2000)), SPECIAL, entry)
    assert all(len(window.ids) <= entry.max_tokens for window in found)
    assert all(window.ids.count(3) <= MAX_TITLE_TOKENS + 1 for window in found)
    seen = {window.first + i for window in found for i in range(window.length)}
    assert seen == set(range(2000))


@pytest.mark.parametrize("tokens", [0, 1, 30, 62, 100, 300])
def test_a_title_gives_way_where_the_question_leaves_little_room(
    bundle: Bundle, tokens: int
) -> None:
    entry = bundle.manifest.reader.model_copy(update={"max_tokens": 128, "window_overlap": 8})
    asked = min(tokens, max_question_tokens(entry))
    found = build_windows((1,) * asked, (3,) * 500, tuple(range(200)), SPECIAL, entry)
    assert max(len(window.ids) for window in found) == 128
    assert all(window.length >= 16 for window in found)


class Scripted:
    """A model that likes one token id."""

    def __init__(self, liked: int) -> None:
        self.liked = liked
        self.runs = 0

    def run(
        self, inputs: Mapping[str, NDArray[Any]], stop: StopSignal | None = None
    ) -> list[NDArray[np.float32]]:
        self.runs += 1
        hit = (inputs["input_ids"] == self.liked).astype(np.float32)
        return [hit, hit, hit.max(axis=1)]


def test_an_answer_in_the_last_window_is_found_at_its_place(bundle: Bundle) -> None:
    tokenizer = Tokenizer(bundle.tokenizer)
    text = "word " * 900 + "zebra at the end"
    liked = tokenizer.tokenise("zebra").ids[0]
    model = Scripted(liked)
    whole = CrossEncoder(model, tokenizer.special, bundle.manifest.reader)
    passage = stored(tokenizer, "T", text)
    reading = Reader(whole, bundle.manifest.score).read((5,), passage, HIT, 10)
    assert model.runs > 1
    assert reading.answer == "zebra"
    assert text[reading.start : reading.end] == "zebra"
    assert reading.score == combine_scores(bundle.manifest.score, 1.0, 2.0, 0.5)


def test_a_passage_is_scored_by_the_weights_of_the_order_in_which_it_was_found(
    bundle: Bundle,
) -> None:
    tokenizer = Tokenizer(bundle.tokenizer)
    passage = stored(tokenizer, "T", "A zebra.")
    model = Scripted(tokenizer.tokenise("zebra").ids[0])
    whole = CrossEncoder(model, tokenizer.special, bundle.manifest.reader)
    plain = ScoreEntry(relevance=1, span=0, distance=0, no_answer_below=0)
    late = ScoreEntry(relevance=1, span=0, distance=-1, hybrid=-2, no_answer_below=0)
    reader = Reader(whole, plain, late)
    first, second = (
        reader.read((5,), passage, replace(HIT, late_interaction=each), 10)
        for each in (False, True)
    )
    assert (first.score, first.late_interaction) == (1.0, False)
    assert second.score == pytest.approx(1 - 0.5 - 0.8)
    assert second.late_interaction


def test_an_answer_cuts_no_address(bundle: Bundle) -> None:
    tokenizer = Tokenizer(bundle.tokenizer)
    passage = stored(tokenizer, "T", "Write to zebra@zoo.example.org, please.")
    model = Scripted(tokenizer.tokenise("zebra").ids[0])
    whole = CrossEncoder(model, tokenizer.special, bundle.manifest.reader)
    reading = Reader(whole, bundle.manifest.score).read((5,), passage, HIT, 10)
    assert reading.answer == "zebra@zoo.example.org"


def test_a_passage_without_tokens_has_no_answer(bundle: Bundle) -> None:
    tokenizer = Tokenizer(bundle.tokenizer)
    reading = open_reader(bundle, tokenizer.special).read(
        (2040,), stored(tokenizer, "", "\u200d"), HIT, 10
    )
    assert (reading.start, reading.end, reading.answer) == (0, 0, "")
    assert reading.score == float("-inf")


@pytest.mark.parametrize("weight", [1.0, 0.0, -1.0])
def test_no_span_is_the_least_score_for_any_weight(weight: float) -> None:
    """DPR's rule gives spans no weight, and 0 times infinity is not a number."""
    weights = ScoreEntry(relevance=1, span=weight, distance=0, no_answer_below=0)
    assert combine_scores(weights, 3.0, float("-inf"), 0.5) == float("-inf")


@pytest.mark.parametrize(("weight", "gained"), [(None, 0.0), (0.25, 1.0)])
def test_words_of_the_question_count_as_the_bundle_weighs_them(
    weight: float | None, gained: float
) -> None:
    weights = ScoreEntry(relevance=1, span=1, distance=-1, words=weight, no_answer_below=0)
    plain, with_words = (combine_scores(weights, 3.0, 2.0, 0.5, words) for words in (0.0, 4.0))
    assert with_words - plain == gained


def test_shorter_windows_read_the_same_passage_in_more_runs(whole: Bundle) -> None:
    tokenizer = Tokenizer(whole.tokenizer)
    passage = stored(tokenizer, "Danube", "The river rises in Donaueschingen. " + "It flows. " * 60)
    asked = tokenizer.tokenise("Where does the Danube rise?").ids
    usual = open_reader(whole, tokenizer.special).read(asked, passage, HIT, 10)
    short = open_reader(whole, tokenizer.special, max_tokens=64).read(asked, passage, HIT, 10)
    assert usual.answer == short.answer == "Donaueschingen"


def test_a_split_reader_refuses_shorter_windows_and_names_the_options_to_leave_out(
    bundle: Bundle,
) -> None:
    special = Tokenizer(bundle.tokenizer).special
    with pytest.raises(ArtefactError, match="--max-tokens"):
        open_reader(bundle, special, max_tokens=64)
    with pytest.raises(ArtefactError, match="--pad-to"):
        open_reader(bundle, special, InferenceOptions(pad_to=380))


@pytest.fixture(scope="module")
def reader(bundle: Bundle) -> tuple[Reader, Tokenizer]:
    tokenizer = Tokenizer(bundle.tokenizer)
    return open_reader(bundle, tokenizer.special), tokenizer


texts = st.text(
    st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from(list("aé ñ漢字ع 🎻👩🏽\u0301\u200d1,2.3\t\n-'")),
    ),
    min_size=1,
    max_size=60,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts)
def test_an_answer_is_always_a_substring_at_its_offsets(
    reader: tuple[Reader, Tokenizer], text: str
) -> None:
    model, tokenizer = reader
    question = tokenizer.tokenise("what is it?").ids
    got = model.read(question, stored(tokenizer, "T", text), HIT, 10)
    assert 0 <= got.start <= got.end <= len(text)
    assert got.answer == text[got.start : got.end]


def test_the_shipped_reader_finds_a_plain_answer(reader: tuple[Reader, Tokenizer]) -> None:
    model, tokenizer = reader
    question = tokenizer.tokenise("Who won the Tour de France in 2015?").ids
    text = "Chris Froome won the 2015 Tour de France, ahead of Nairo Quintana."
    assert model.read(question, stored(tokenizer, "Tour de France", text), HIT, 10).answer == (
        "Chris Froome"
    )
