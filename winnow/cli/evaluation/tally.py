"""From one reply to figures, and from many to a report. Pure.

One reply that lists every passage read tells what reading fewer would have answered: the passages
are read in the order of their hybrid distance, and scores do not depend on what else is read. So it
is where reading may stop early, too: looks come after the same passages whatever their number. But
the passages that were then left unread are not told, and recall is of those as well.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from winnow.cli.failures import failures
from winnow.cli.questions import AskedQuestion
from winnow.convert import answer as convert
from winnow.domain.answered import dimmed
from winnow.text.scores import exact_match, f1, normalise
from winnow.v1 import answer_pb2

STEPS = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class AccuracyFigures:
    """Shares of questions, in percent, after reading so many passages."""

    passages: int
    exact_match: float
    f1: float
    recall_by_answer: float | None
    """A passage contains an accepted answer; none where reading may have stopped early."""
    recall_by_passage: float | None
    """The gold passage is among them; none there, too, and where the file gives no contexts."""


@dataclass(frozen=True, slots=True)
class Report:
    """What `winnow evaluate` says."""

    questions: int
    without_answers: int
    """Questions with nothing to compare with: asked, and left out of the figures."""
    failed: int
    errors: dict[str, int]
    """Failed questions by status."""
    said: dict[str, str]
    """What the first of each status said."""
    incomplete: int
    """Replies that did not cover the whole index."""
    dimmed: int
    """Replies for which fewer passages were read than were asked for and needed: there was too much
    to do.
    """
    figures: tuple[AccuracyFigures, ...]
    p50_ms: float
    p95_ms: float
    p99_ms: float
    passages_read: float
    """Mean of one question, also those read ahead in vain."""
    passages_needed: float | None
    """Mean of one question: those that its answers rest on; none if the front is too old to say."""
    max_loss: float | None
    """Exact match, in percent, that stopping early might lose, as replies say; 0 if every passage
    was read. What was asked for if no reply says it, and none if that was left to the server.
    """

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """One question's reply and the seconds it took; no reply if it failed."""

    asked: AskedQuestion
    reply: answer_pb2.AnswerResponse | None
    seconds: float
    error: str = ""
    """Why it failed: status, colon, words."""


def report(outcomes: Sequence[QuestionOutcome], most: int, max_loss: float | None = None) -> Report:
    """The figures of all outcomes for 1 to `most` passages; a failed question counts as wrong.

    `max_loss`: what every request said; none if it was left to the server.
    """
    why = failures(outcome.error for outcome in outcomes if outcome.reply is None)
    judged = [outcome for outcome in outcomes if outcome.asked.answers]
    replies = [outcome.reply for outcome in outcomes if outcome.reply is not None]
    times = [outcome.seconds * 1e3 for outcome in outcomes if outcome.reply is not None]
    p50, p95, p99 = np.percentile(times, [50, 95, 99]).tolist() if times else (0.0, 0.0, 0.0)
    steps = sorted({step for step in STEPS if step < most} | {most})
    needed = [r.passages_needed for r in replies if r.HasField("passages_needed")]
    lost = max((loss for r in replies if (loss := max_loss_of(r)) is not None), default=max_loss)
    return Report(
        questions=len(outcomes),
        without_answers=len(outcomes) - len(judged),
        failed=len(outcomes) - len(replies),
        errors=why.errors,
        said=why.said,
        incomplete=sum(not reply.coverage.complete for reply in replies),
        dimmed=sum(map(_dimmed, replies)),
        figures=tuple(_figures(judged, step, lost == 0) for step in steps),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        passages_read=float(np.mean([r.passages_read for r in replies])) if replies else 0.0,
        passages_needed=float(np.mean(needed)) if needed else None,
        max_loss=lost,
    )


def _dimmed(reply: answer_pb2.AnswerResponse) -> bool:
    needed = reply.passages_needed if reply.HasField("passages_needed") else None
    return dimmed(reply.passages_asked, reply.passages_granted, needed, max_loss_of(reply))


def max_loss_of(reply: answer_pb2.AnswerResponse) -> float | None:
    """What stopping early might lose, in percent; none if the front is too old to say."""
    return convert.decimal(reply.max_loss) if reply.HasField("max_loss") else None


def _figures(outcomes: Sequence[QuestionOutcome], passages: int, whole: bool) -> AccuracyFigures:
    """`whole`: whether every passage was read, so that recall can be told."""
    matches, overlaps, by_answer, by_passage = [], [], [], []
    for outcome in outcomes:
        asked, near = outcome.asked, _nearest(outcome.reply, passages)
        said = max(near, key=lambda answer: answer.score).text if near else ""
        matches.append(exact_match(said, asked.answers))
        overlaps.append(f1(said, asked.answers))
        by_answer.append(any(_contains(a.passage.text, asked.answers) for a in near))
        if asked.context is not None:
            by_passage.append(any(same(a.passage.text, asked.context) for a in near))
    return AccuracyFigures(
        passages,
        _percent(matches),
        _percent(overlaps),
        _percent(by_answer) if whole else None,
        _percent(by_passage) if by_passage and whole else None,
    )


def _nearest(reply: answer_pb2.AnswerResponse | None, passages: int) -> list[answer_pb2.Answer]:
    if reply is None:
        return []
    order = sorted(reply.answers, key=lambda a: (a.hybrid_distance, a.passage.id))
    return order[:passages]


def _contains(text: str, answers: Sequence[str]) -> bool:
    words = f" {normalise(text)} "
    return any(f" {answer} " in words for answer in map(normalise, answers) if answer)


def same(text: str, context: str) -> bool:
    """Whether two texts are one passage, white space aside."""
    return text.split() == context.split()


def _percent(values: Sequence[float]) -> float:
    return 100.0 * float(np.mean(values)) if values else 0.0
