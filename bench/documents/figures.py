"""Computes the figures of the benchmark from judged replies. Pure."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.documents.collection import Question
from bench.documents.judging import (
    FoundAnswer,
    FoundPassage,
    is_gold,
    is_right_passage,
    is_right_sentence,
    is_right_span,
    span_f1,
)
from bench.figures import Figure, at_least, at_most
from bench.quantiles import nearest_rank

KEPT = 0.95
"""Share of the right answers that the threshold for false premises keeps."""
DEPTHS = (1, 10)
"""Numbers of first passages among which the gold passage is looked for."""
_PARTS = 10
"""Number of parts of equal size over which the calibration error is averaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedReply:
    """The reply to a question, with what is judged of it."""

    question: Question
    shown: bool
    """Whether the best answer is shown. Otherwise the question is refused."""
    best: FoundAnswer | None
    """The best answer, shown or not; None without candidates."""
    retrieved: tuple[FoundPassage, ...]
    """The passages read, the nearest first."""

    @property
    def span_is_right(self) -> bool:
        """Whether the span of the best answer is right."""
        return self.best is not None and is_right_span(self.best.span, self.question)

    @property
    def sentence_is_right(self) -> bool:
        """Whether the sentence of the best answer is right."""
        return self.best is not None and is_right_sentence(self.best, self.question)

    @property
    def passage_is_right(self) -> bool:
        """Whether the passage of the best answer is right."""
        return self.best is not None and is_right_passage(self.best, self.question)

    @property
    def gold_rank(self) -> int | None:
        """Rank of the gold passage, from 1; None if it was not retrieved."""
        ranks = enumerate(self.retrieved, start=1)
        return next((rank for rank, each in ranks if is_gold(each, self.question)), None)


def figures_of(
    replies: Sequence[JudgedReply], false_premises: Sequence[JudgedReply]
) -> list[Figure]:
    """Returns the figures of all replies, and those of each kind of document."""
    answerable = [each for each in replies if each.question.answers]
    unanswerable = [each for each in replies if not each.question.answers]
    figures = [
        at_least(_percent("all", "right span", answerable, lambda r: r.span_is_right), 60),
        Figure("all", "F1 of the span", 100 * _mean(map(_f1, answerable)), "%"),
        at_least(_percent("all", "right sentence", answerable, lambda r: r.sentence_is_right), 80),
        _percent("all", "right passage", answerable, lambda r: r.passage_is_right),
        *(_gold_within("all", answerable, depth) for depth in DEPTHS),
        _percent("all", "shown, right span", answerable, lambda r: r.shown and r.span_is_right),
        _percent(
            "all", "shown, right sentence", answerable, lambda r: r.shown and r.sentence_is_right
        ),
        _percent("all", "refused, with an answer", answerable, lambda r: not r.shown),
        at_least(
            _percent("all", "refused, without an answer", unanswerable, lambda r: not r.shown), 85
        ),
        *_calibration_figures(replies),
        *_refusal_figures(answerable, unanswerable, false_premises),
    ]
    for kind in sorted({each.question.kind for each in answerable}):
        some = [each for each in answerable if each.question.kind == kind]
        figures += [
            Figure(kind, "questions", len(some)),
            _percent(kind, "right span", some, lambda r: r.span_is_right),
            _percent(kind, "right sentence", some, lambda r: r.sentence_is_right),
            *(_gold_within(kind, some, depth) for depth in DEPTHS),
        ]
    return figures


def refusal_threshold(right: Sequence[JudgedReply]) -> float:
    """Returns the confidence that `KEPT` of the right answers reach; infinity without any."""
    confidences = [each.best.certainty for each in right if each.best is not None]
    if not confidences:
        return math.inf
    # the lowest confidence of the kept answers: one in twenty may be below it
    dropped = math.floor(len(confidences) * (1 - KEPT))
    return sorted(confidences)[dropped]


def calibration_error(judged: Sequence[tuple[float, bool]]) -> float:
    """Returns the mean difference of confidence and precision, over parts of equal size.

    `judged`: confidences, and whether the answer is right. The parts are sorted by confidence.
    """
    ordered = sorted(judged, key=lambda each: each[0])
    bounds = [len(ordered) * part // _PARTS for part in range(_PARTS + 1)]
    parts = [ordered[start:end] for start, end in itertools.pairwise(bounds) if end > start]
    return _mean(
        abs(_mean(c for c, _ in part) - _mean(float(r) for _, r in part)) for part in parts
    )


def _calibration_figures(replies: Sequence[JudgedReply]) -> list[Figure]:
    """Returns the errors of both confidences, as far as the bundle has them."""
    bests = [(each, each.best) for each in replies if each.best is not None]
    judged = {
        "span": [
            (best.confidence, each.span_is_right)
            for each, best in bests
            if best.confidence is not None
        ],
        "sentence": [
            (best.sentence_confidence, each.sentence_is_right)
            for each, best in bests
            if best.sentence_confidence is not None
        ],
    }
    return [
        at_most(Figure("all", f"calibration error of the {size}", calibration_error(some)), 0.05)
        for size, some in judged.items()
        if some
    ]


def _refusal_figures(
    answerable: Sequence[JudgedReply],
    unanswerable: Sequence[JudgedReply],
    false_premises: Sequence[JudgedReply],
) -> list[Figure]:
    """Returns refusals at the threshold that keeps most right spans."""
    threshold = refusal_threshold([each for each in answerable if each.span_is_right])

    def refused(reply: JudgedReply) -> bool:
        return reply.best is None or reply.best.certainty < threshold

    group = "95 %"
    return [
        Figure(group, "threshold of confidence that keeps 95 % of right spans", threshold),
        at_least(_percent(group, "refused, false premise", false_premises, refused), 80),
        _percent(group, "refused, without an answer", unanswerable, refused),
        _percent(group, "refused, with an answer", answerable, refused),
        Figure(group, "median confidence, false premise", _median(false_premises)),
        Figure(group, "median confidence, right span", _median(answerable, right=True)),
    ]


def _gold_within(group: str, replies: Sequence[JudgedReply], depth: int) -> Figure:
    return _percent(
        group,
        f"gold passage among the first {depth}",
        replies,
        lambda reply: reply.gold_rank is not None and reply.gold_rank <= depth,
    )


def _percent(
    group: str, name: str, replies: Sequence[JudgedReply], holds: Callable[[JudgedReply], bool]
) -> Figure:
    return Figure(group, name, 100 * _mean(float(holds(each)) for each in replies), "%")


def _f1(reply: JudgedReply) -> float:
    return span_f1(reply.best.span, reply.question) if reply.best is not None else 0.0


def _median(replies: Sequence[JudgedReply], *, right: bool = False) -> float:
    some = [each for each in replies if not right or each.span_is_right]
    return nearest_rank([each.best.certainty for each in some if each.best is not None], 0.5)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else math.nan
