"""Which sentences of a text are highlighted."""

from winnow.domain.calibration import AnswerCalibration
from winnow.domain.confidence import Confidence
from winnow.domain.threshold import AnswerThreshold
from winnow.reading.window_reading import WindowReading
from winnow.stateless.reading.highlighting import highlighted
from winnow.stateless.reading.scoring import ASSUMED_DISTANCE
from winnow.stateless.reading.validation import HighlightOptions

SCORES = AnswerCalibration(
    threshold=AnswerThreshold(0.0),
    confidence=Confidence(relevance=0.0, span=1.0, distance=0.0, bias=0.0),
)
OPTIONS = HighlightOptions(sentences=3, max_answer_tokens=4, min_confidence=0.0)


def reading(start: int, end: int, score: float) -> WindowReading:
    return WindowReading(
        start=start,
        end=end,
        score=score,
        relevance=0.0,
        span_score=score,
        distance=ASSUMED_DISTANCE,
    )


def test_a_span_of_punctuation_highlights_no_sentence() -> None:
    """A sentence without an answer often has its full stop as the best span."""
    text = "It is old. It costs 5 €."
    readings = [(0, 0, reading(9, 10, 2.0)), (1, 0, reading(22, 23, 1.0))]
    found, has_answer = highlighted(text, [(0, 10), (11, 24)], readings, SCORES, OPTIONS)
    assert [(each.text, each.span) for each in found] == [("It costs 5 €.", "€")]
    assert has_answer
    assert highlighted(text, [(0, 10)], readings[:1], SCORES, OPTIONS) == ([], False)
