"""Merges the windows of texts to the results of a request. Pure."""

import math
from collections.abc import Mapping, Sequence

from winnow.domain.text_reading import RankedText, TextReading, TextToRead
from winnow.domain.text_relevance import TextRelevance
from winnow.reading.window_reading import WindowReading
from winnow.stateless.reading.question import TokenisedQuery
from winnow.stateless.reading.scoring import (
    TextScores,
    WindowRelevance,
    best_odds,
    highest,
    relevance_score,
)
from winnow.text.surroundings import list_around, sentence_around


def text_reading(
    index: int,
    text: TextToRead,
    windows: Sequence[tuple[int, WindowReading]],
    scores: TextScores,
    question: TokenisedQuery,
) -> TextReading:
    """Merges the windows of a text.

    Args:
        index: number of the text in the request.
        text: the text.
        windows: the reading of each window in any order, with the offset of its text in the text.
        scores: the calibrated figures of the bundle.
        question: the question.

    """
    offset, best = min(windows, key=lambda window: (*_sort_key(window[1]), window[0]))
    start, end = best.start + offset, best.end + offset
    sentence = (start, end)
    if end > start:
        listed = list_around(text.text, start, end) if question.asks_for_several else None
        sentence = listed or sentence_around(text.text, start, end)
    relevances = [
        WindowRelevance(each.relevance, question.words.share(each.words)) for _, each in windows
    ]
    return TextReading(
        index=index,
        id=text.id,
        text=text.text[start:end],
        start=start,
        end=end,
        sentence=sentence,
        score=best.score,
        relevance=highest([each.logit for each in relevances]),
        span_score=best.span_score,
        relevance_score=relevance_score(best_odds(relevances, scores.relevance)),
        confidence=scores.answers.span_confidence(best),
        sentence_confidence=scores.answers.confidence_of_sentence(best),
        windows=len(windows),
        windows_remembered=sum(each.remembered for _, each in windows),
    )


def best_readings(readings: Sequence[TextReading], answers: int) -> tuple[int, ...]:
    """Returns the indexes of the readings with the highest scores, best first.

    Of equal scores, the higher score of the span wins, then the earlier text.
    """
    found = [each for each in readings if each.end > each.start and not math.isnan(each.score)]
    found.sort(key=lambda each: (-each.score, -each.span_score, each.index))
    return tuple(each.index for each in found[:answers])


def ranked_texts(
    texts: Sequence[TextToRead],
    windows: Mapping[int, Sequence[WindowRelevance]],
    weights: TextRelevance,
    top_n: int,
) -> tuple[RankedText, ...]:
    """Orders texts by their most relevant window, best first. `windows` are those of each text."""
    odds = {index: best_odds(own, weights) for index, own in windows.items()}
    ordered = sorted(odds, key=lambda index: (-odds[index], index))
    return tuple(
        RankedText(
            index=index,
            id=texts[index].id,
            relevance=highest([each.logit for each in windows[index]]),
            relevance_score=relevance_score(odds[index]),
        )
        for index in ordered[:top_n]
    )


def _sort_key(reading: WindowReading) -> tuple[bool, float]:
    """Returns a sort key, best first; a score that is not a number is last."""
    not_a_number = math.isnan(reading.score)
    return not_a_number, 0.0 if not_a_number else -reading.score
