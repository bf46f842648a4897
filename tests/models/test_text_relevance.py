"""Tests of fitting the relevance of texts that callers send."""

from dataclasses import replace

import numpy as np
import pytest
from text_reading import TOKENIZER, reading_core
from whole_bundle import WHOLE

from models.data import DataError, Passage
from models.measuring.calibrate import Candidates
from models.measuring.reading import OfflineReader
from models.measuring.text_relevance import LOGIT_ALONE, first_is_right, fit_text_relevance
from winnow.bundle import load_bundle
from winnow.domain.text_reading import TextToRead
from winnow.domain.text_relevance import TextRelevance
from winnow.stateless.reading.question import QuestionTokeniser
from winnow.stateless.reading.tokenising import TokenisedText
from winnow.stateless.reading.windows import windows_of

DRAWN = TextRelevance(logit=0.5, words=2.0, bias=-1.0)
"""What decides which passages contain the answer."""


def found(questions: int = 1_000, passages: int = 10, weights: TextRelevance = DRAWN) -> Candidates:
    """Passages contain the answer with the probability that `weights` give."""
    generator = np.random.default_rng(1)
    features = 3 * generator.normal(size=(questions, passages, 4))
    shares = 2 * generator.random((questions, passages))
    odds = weights.odds(features[..., 0], shares)  # type: ignore[arg-type]
    right = generator.random(shares.shape) < 1 / (1 + np.exp(-odds))
    return Candidates(
        features=features,
        hybrid_distances=features[..., 2],
        word_shares=shares,
        is_right=right,
        has_answer=right,
        is_right_sentence=right,
        is_answerable=np.any(right, axis=1),
    )


def test_the_fit_finds_the_probability_that_a_passage_contains_the_answer() -> None:
    candidates = found()
    fitted = fit_text_relevance([candidates], 10)
    assert fitted.logit == pytest.approx(DRAWN.logit, rel=0.1)
    assert fitted.words == pytest.approx(DRAWN.words, rel=0.1)
    assert fitted.bias == pytest.approx(DRAWN.bias, abs=0.15)
    before, after = (first_is_right(candidates, each, 10) for each in (LOGIT_ALONE, fitted))
    assert after > before


def test_only_the_first_passages_count() -> None:
    """Those after them may be anything."""
    candidates = found(passages=20)
    candidates.has_answer[:, 10:] ^= True
    fitted = fit_text_relevance([candidates], 10)
    assert fitted.words == pytest.approx(DRAWN.words, rel=0.1)


def test_a_weight_is_never_negative() -> None:
    """Otherwise more words of the question would make a text less relevant."""
    fitted = fit_text_relevance([found(weights=replace(DRAWN, words=-2.0))], 10)
    assert fitted.words == pytest.approx(0, abs=1e-3)


def test_each_kind_of_text_counts_equally() -> None:
    """A tenth of the questions, where words do not help, counts as much as all others."""
    many, few = found(), found(100, weights=replace(DRAWN, words=0.0))
    both = fit_text_relevance([many, few], 10)
    assert 0 < both.words < 0.6 * DRAWN.words


@pytest.mark.parametrize("always", [True, False])
def test_passages_of_one_kind_are_refused(always: bool) -> None:
    candidates = found(3, 2)
    candidates.has_answer[:] = always
    with pytest.raises(DataError, match="all retrieved passages contain an answer, or none does"):
        fit_text_relevance([candidates], 2)
    assert np.isnan(first_is_right(candidates, DRAWN, 2))


def test_the_fit_and_the_server_count_the_same_words() -> None:
    question, passage = "Who built the old bridge of Mostar?", Passage("Mostar", "A bridge. Built!")
    bundle = load_bundle(WHOLE)
    offline = OfflineReader(
        graph=bundle.reader, tokenizer=bundle.tokenizer, manifest=bundle.manifest
    )
    asked = QuestionTokeniser(60).tokenise(TOKENIZER, question)
    text = TokenisedText(
        TextToRead(passage.text, passage.title),
        TOKENIZER.tokenise(passage.title).ids,
        TOKENIZER.tokenise(passage.text),
    )
    with reading_core() as core:
        (window,) = windows_of(asked.ids, [text], core.reader.model)
    served = asked.words.share(asked.words.bm25(window.token_ids))
    assert offline.word_shares(question, [passage]) == [served]
    assert served > 0
