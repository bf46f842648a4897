"""Fits score, confidences and early stopping to what the reader says of retrieved passages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from models.assemble import ScoreWeights
from models.measuring.calibrate import (
    PASSAGES,
    Candidates,
    exact_match_by_passages,
    fit_score,
    join,
)
from models.measuring.confidence import (
    AnswerPart,
    BestAnswers,
    fit_confidence,
    fit_min_confidence,
)
from models.measuring.early_stopping import FittedRule, fit_stopping_rules
from models.measuring.text_relevance import LOGIT_ALONE, first_is_right, fit_text_relevance
from winnow.domain.confidence import Confidence
from winnow.domain.text_relevance import TextRelevance

COUNTS = (1, 2, 5, 10, 20)
"""Numbers of passages at which accuracy is reported."""
DEFAULT_PASSAGES = 10
"""Number of passages to read without early stopping."""
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingFit:
    """Weights that are fitted to the reader's outputs."""

    score: ScoreWeights
    confidence: Confidence
    sentence_confidence: Confidence
    min_confidence: float
    stopping: list[FittedRule]

    def score_entry(self, earlier: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns the manifest's entry of the score, with the confidences of an `earlier` one."""
        score = _rounded(asdict(self.score))
        if not score["hybrid"]:
            del score["hybrid"]
        confidences = {
            "min_confidence": round(self.min_confidence, 5),
            "confidence": _rounded(asdict(self.confidence)),
            "sentence_confidence": _rounded(asdict(self.sentence_confidence)),
        }
        if earlier is not None:
            confidences = {name: earlier[name] for name in confidences}
        return {**score, **confidences}

    def stopping_entries(self) -> list[dict[str, Any]]:
        """Returns the manifest's entries of early stopping."""
        return [
            {"max_loss": each.max_loss, **_rounded(asdict(each.rule))} for each in self.stopping
        ]


def fit_reading(
    kinds: Mapping[str, Candidates],
    shares: Sequence[float],
    report: Report,
    *,
    score_passages: int = PASSAGES,
) -> ReadingFit:
    """Fits all weights to the candidates of each kind of text.

    `shares` are the shares of each kind's passages without an answer that confidences are fitted
    on. Score and early stopping are fitted on the first `score_passages` passages of each question,
    and confidences on all.
    """
    first = {kind: each.first(score_passages) for kind, each in kinds.items()}
    score = fit_score(list(first.values()))
    _report_score(kinds, score, report)
    confidences = {
        part: fit_confidence(
            [
                BestAnswers.of(candidates, score, part, DEFAULT_PASSAGES, share)
                for candidates, share in zip(kinds.values(), shares, strict=True)
            ]
        )
        for part in AnswerPart
    }
    span = confidences[AnswerPart.SPAN]
    return ReadingFit(
        score=score,
        confidence=span,
        sentence_confidence=confidences[AnswerPart.SENTENCE],
        min_confidence=fit_min_confidence(first, score, span, DEFAULT_PASSAGES),
        stopping=_fit_stopping(first, score, report),
    )


def fit_relevance(kinds: Mapping[str, Candidates], report: Report) -> TextRelevance:
    """Fits the relevance of texts that callers send."""
    weights = fit_text_relevance(list(kinds.values()), DEFAULT_PASSAGES)
    for kind, candidates in kinds.items():
        before, after = (
            first_is_right(candidates, each, DEFAULT_PASSAGES) for each in (LOGIT_ALONE, weights)
        )
        report(
            f"{kind}, relevance of texts: the first of {DEFAULT_PASSAGES} has an answer for "
            f"{after:.1f} % of the questions, by the reader's logit alone for {before:.1f} %"
        )
    return weights


def relevance_entry(weights: TextRelevance) -> dict[str, float]:
    """Returns the manifest's entry of the relevance of texts."""
    return _rounded(asdict(weights))


def _report_score(kinds: Mapping[str, Candidates], score: ScoreWeights, report: Report) -> None:
    for kind, candidates in kinds.items():
        for name, weights in (("relevance alone", ScoreWeights(1, 0, 0)), ("fitted", score)):
            curve = exact_match_by_passages(candidates, weights, COUNTS)
            report(f"{kind}, {name}: exact match by passages {curve_text(curve)}")


def _fit_stopping(
    kinds: Mapping[str, Candidates], score: ScoreWeights, report: Report
) -> list[FittedRule]:
    """Fits the rules on the questions of all kinds whose answer was retrieved."""
    answerable = join([each.answerable() for each in kinds.values()])
    rules = fit_stopping_rules(answerable, score, DEFAULT_PASSAGES)
    for each in rules:
        report(
            f"early stopping: reads {each.read:.1f} of {DEFAULT_PASSAGES} passages, "
            f"loses {each.lost:.2f} points of exact match, at most {each.expected:.2f} expected "
            f"(promised {each.max_loss:g})"
        )
    return rules


def curve_text(values: Sequence[float]) -> str:
    """Formats a value for each of `COUNTS`."""
    return f"{COUNTS}: {[round(value, 1) for value in values]}"


def _rounded(values: dict[str, Any]) -> dict[str, float]:
    return {name: round(value, 5) + 0.0 for name, value in values.items()}  # + 0.0: no minus zero
