"""Finds the sentences of a text that answer a question. Pure."""

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from winnow.domain.calibration import AnswerCalibration
from winnow.domain.text_reading import HighlightedSentence, TextSpan
from winnow.reading.window_reading import WindowReading
from winnow.stateless.reading.validation import HighlightOptions

_SHARE_OF_BEST = 0.5
"""A sentence is shown if its confidence is at least this share of the best one's."""

SentenceReading = tuple[int, int, WindowReading]
"""Number of a sentence, offset of the window's text in the text, and the best span."""


def sentences_within(sentences: Sequence[TextSpan], window: TextSpan) -> list[tuple[int, TextSpan]]:
    """Returns the sentences that overlap a window, with their numbers.

    Their ranges are cut to the window, and count from its start.
    """
    start, end = window
    first = bisect_right(sentences, start, key=lambda sentence: sentence[1])
    found = []
    for number in range(first, len(sentences)):
        begin, last = sentences[number]
        if begin >= end:
            break
        found.append((number, (max(begin, start) - start, min(last, end) - start)))
    return found


def highlighted(
    text: str,
    sentences: Sequence[TextSpan],
    readings: Iterable[SentenceReading],
    scores: AnswerCalibration,
    options: HighlightOptions,
) -> tuple[list[HighlightedSentence], bool]:
    """Returns the sentences to show, in the order of the text, and whether there is an answer."""
    best: dict[int, tuple[int, WindowReading]] = {}
    for number, offset, reading in readings:
        span = text[reading.start + offset : reading.end + offset]
        if math.isnan(reading.score) or _is_punctuation(span):
            continue
        if number not in best or reading.score > best[number][1].score:
            best[number] = offset, reading
    found = [
        _highlighted_sentence(text, sentences[number], offset, reading, scores)
        for number, (offset, reading) in best.items()
    ]
    found.sort(key=lambda each: (-each.score, each.start))
    if not found:
        return [], False
    chosen: list[HighlightedSentence] = []
    for each in _likely_sentences(
        found, options
    ):  # a span may have extended a sentence into the next one
        if all(each.end <= other.start or other.end <= each.start for other in chosen):
            chosen.append(each)
        if len(chosen) == options.sentences:
            break
    has_answer = scores.threshold.accepts(found[0].score, found[0].confidence)
    return sorted(chosen, key=lambda each: each.start), has_answer


def _is_punctuation(span: str) -> bool:
    """Whether a span has only punctuation and space, as that of a sentence without an answer."""
    return all(unicodedata.category(character)[0] in "PZC" for character in span)


def _likely_sentences(
    found: Sequence[HighlightedSentence], options: HighlightOptions
) -> Sequence[HighlightedSentence]:
    """Returns the sentences that are likely enough. `found` begins with the best one."""
    best = found[0]
    if best.confidence is None:  # the bundle has no calibration: odds follow the score
        least = best.score + math.log(_SHARE_OF_BEST)
        return [each for each in found if each.score >= least]
    minimum = options.min_confidence
    if minimum is None:
        minimum = best.confidence * _SHARE_OF_BEST
    return [each for each in found if (each.confidence or 0.0) >= minimum]


def _highlighted_sentence(
    text: str, sentence: TextSpan, offset: int, reading: WindowReading, scores: AnswerCalibration
) -> HighlightedSentence:
    # a span is extended to whole expressions, which may reach beyond the end of the sentence
    start, end = reading.start + offset, reading.end + offset
    begin, last = min(sentence[0], start), max(sentence[1], end)
    return HighlightedSentence(
        text=text[begin:last],
        start=begin,
        end=last,
        span=text[start:end],
        span_start=start,
        span_end=end,
        score=reading.score,
        confidence=scores.span_confidence(reading),
        sentence_confidence=scores.confidence_of_sentence(reading),
    )
