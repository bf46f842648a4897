"""Figures from replies. Pure.

A reply that lists every passage read tells what reading fewer passages would have answered: the
passages are read in the order of their hybrid distance, and scores do not depend on what else is
read. This also holds where reading may stop early: it is decided after the same passages for any
number of passages to read. But the reply does not list the passages that were then left unread, and
recall counts those, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.cli.asking import (
    QuestionOutcome,
    count_failures,
    max_loss_of,
    mean,
    passages_needed_of,
    percentiles,
)
from winnow.domain.answered import dimmed
from winnow.text.scores import exact_match, f1, normalise
from winnow.v1 import answer_pb2

STEPS = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyFigures:
    """Shares of questions, in percent, after reading a number of passages."""

    passages: int
    exact_match: float
    f1: float
    recall_by_answer: float | None
    """A passage contains an accepted answer; None where reading may have stopped early."""
    recall_by_passage: float | None
    """The gold passage was read; None in the same case, and where the file has no contexts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What `winnow evaluate` shows."""

    questions: int
    without_answers: int
    """Questions without accepted answers: they are asked, and left out of the figures."""
    failed: int
    errors: dict[str, int]
    """Failed questions by status."""
    said: dict[str, str]
    """The first message of each status."""
    incomplete: int
    """Replies that did not cover the whole index."""
    dimmed: int
    """Replies for which an overloaded front node read fewer passages than were asked for and
    needed.
    """
    figures: tuple[AccuracyFigures, ...]
    p50_ms: float
    p95_ms: float
    p99_ms: float
    passages_read: float
    """Mean of one question; it counts passages that were read ahead and not needed, too."""
    passages_needed: float | None
    """Mean of the passages that answers rest on; None if the front node is too old to say."""
    max_loss: float | None
    """Accuracy budget, as replies name it; 0 if every passage was read. If no reply names it, what
    was asked for; None if that was left to the server.
    """


def report(outcomes: Sequence[QuestionOutcome], most: int, max_loss: float | None = None) -> Report:
    """The figures of all outcomes for 1 to `most` passages; a failed question counts as wrong.

    `max_loss`: what every request asked for; None if that was left to the server.
    """
    why = count_failures(outcome.error for outcome in outcomes if outcome.reply is None)
    judged = [outcome for outcome in outcomes if outcome.question.answers]
    replies = [outcome.reply for outcome in outcomes if outcome.reply is not None]
    times = [outcome.seconds * 1e3 for outcome in outcomes if outcome.reply is not None]
    p50, p95, p99 = percentiles(times, 50, 95, 99)
    steps = sorted({step for step in STEPS if step < most} | {most})
    needed = [count for reply in replies if (count := passages_needed_of(reply)) is not None]
    lost = max((loss for r in replies if (loss := max_loss_of(r)) is not None), default=max_loss)
    return Report(
        questions=len(outcomes),
        without_answers=len(outcomes) - len(judged),
        failed=len(outcomes) - len(replies),
        errors=why.errors,
        said=why.messages,
        incomplete=sum(not reply.coverage.complete for reply in replies),
        dimmed=sum(
            dimmed(r.passages_asked, r.passages_granted, passages_needed_of(r), max_loss_of(r))
            for r in replies
        ),
        figures=tuple(_figures(judged, step, lost == 0) for step in steps),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        passages_read=mean([reply.passages_read for reply in replies]),
        passages_needed=mean(needed) if needed else None,
        max_loss=lost,
    )


def _figures(outcomes: Sequence[QuestionOutcome], passages: int, all_read: bool) -> AccuracyFigures:
    """`all_read`: whether every passage was read, so that recall is known."""
    matches, overlaps, by_answer, by_passage = [], [], [], []
    for outcome in outcomes:
        asked, near = outcome.question, _nearest(outcome.reply, passages)
        answer = max(near, key=lambda answer: answer.score).text if near else ""
        matches.append(exact_match(answer, asked.answers))
        overlaps.append(f1(answer, asked.answers))
        by_answer.append(any(_contains(a.passage.text, asked.answers) for a in near))
        if asked.context is not None:
            by_passage.append(any(same(a.passage.text, asked.context) for a in near))
    return AccuracyFigures(
        passages=passages,
        exact_match=100 * mean(matches),
        f1=100 * mean(overlaps),
        recall_by_answer=100 * mean(by_answer) if all_read else None,
        recall_by_passage=100 * mean(by_passage) if by_passage and all_read else None,
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
    """Whether two texts are the same but for white space."""
    return text.split() == context.split()
