"""Computes accuracy from replies. Pure.

A reply lists every passage read. So one reply also shows the answer that fewer passages would give:
passages are read in the order of their hybrid distance, and the score of a passage does not depend
on other passages.

This also holds with early stopping, whose decision does not depend on the number of passages to
read. But then recall is unknown, because the reply does not list unread passages.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.cli.asking import (
    QuestionOutcome,
    count_failures,
    mean,
    percentiles,
    reported_max_loss,
    reported_passages_needed,
)
from winnow.domain.answered import dimmed
from winnow.text.scores import exact_match, f1, normalise
from winnow.v1 import answer_pb2

STEPS = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyFigures:
    """Accuracy after reading `passages` passages, in percent of the questions."""

    passages: int
    """Passages of the index; of each shard, if each shard read its own best passages."""
    exact_match: float
    f1: float
    in_sentence: float | None
    """Questions with an accepted answer in the sentence of the best answer.

    None if an old front node reports no sentences.
    """
    recall_by_answer: float | None
    """Questions with an accepted answer in a read passage; None if reading may stop early."""
    recall_by_passage: float | None
    """Questions whose gold passage was read.

    None if reading may stop early, or no question has a gold passage.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of `winnow evaluate`. Field names are keys of its JSON."""

    questions: int
    without_answers: int
    """Number of questions without accepted answers. They are asked, but do not count in `figures`.
    """
    failed: int
    errors: dict[str, int]
    """Number of failed questions, by status."""
    said: dict[str, str]
    """The first error message with each status."""
    incomplete: int
    """Number of replies from only a part of the index."""
    dimmed: int
    """Number of replies for which overload reduced the passages read, and so maybe the accuracy."""
    figures: tuple[AccuracyFigures, ...]
    p50_ms: float
    p95_ms: float
    p99_ms: float
    passages_read: float
    """Mean number of passages read for a question, including speculative reads."""
    passages_needed: float | None
    """Mean number of passages that had to be read for the answers; None from an old front node."""
    max_loss: float | None
    """Accuracy budget that the replies report; 0 if every passage was read.

    If no reply reports a budget, the requested one; None if the request left it to the server.
    """


def build_report(
    outcomes: Sequence[QuestionOutcome], max_passages: int, max_loss: float | None = None
) -> Report:
    """Computes the accuracy for several numbers of passages, up to `max_passages`.

    If each shard read its own best passages, only for `max_passages`, since a reply does not say in
    which order a shard has read. A failed question counts as wrong. `max_loss`: the requested
    accuracy budget; None if the request left it to the server.
    """
    failures = count_failures(outcome.error for outcome in outcomes if outcome.reply is None)
    labelled = [outcome for outcome in outcomes if outcome.question.answers]
    replies = [outcome.reply for outcome in outcomes if outcome.reply is not None]
    times = [outcome.seconds * 1e3 for outcome in outcomes if outcome.reply is not None]
    p50, p95, p99 = percentiles(times, 50, 95, 99)
    per_shard = any(reply.read_scope == answer_pb2.READ_SCOPE_PER_SHARD for reply in replies)
    steps = sorted({step for step in STEPS if step < max_passages} | {max_passages})
    needed = [count for reply in replies if (count := reported_passages_needed(reply)) is not None]
    reported = [loss for reply in replies if (loss := reported_max_loss(reply)) is not None]
    budget = max(reported, default=max_loss)
    if per_shard:
        all_listed = all(len(reply.answers) >= reply.passages_read for reply in replies)
        figures = [_figures(labelled, max_passages, None, budget == 0 and all_listed)]
    else:
        figures = [_figures(labelled, step, step, budget == 0) for step in steps]
    return Report(
        questions=len(outcomes),
        without_answers=len(outcomes) - len(labelled),
        failed=len(outcomes) - len(replies),
        errors=failures.errors,
        said=failures.messages,
        incomplete=sum(not reply.coverage.complete for reply in replies),
        dimmed=sum(
            dimmed(
                r.passages_asked,
                r.passages_granted,
                reported_passages_needed(r),
                reported_max_loss(r),
            )
            for r in replies
        ),
        figures=tuple(figures),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        passages_read=mean([reply.passages_read for reply in replies]),
        passages_needed=mean(needed) if needed else None,
        max_loss=budget,
    )


def _figures(
    outcomes: Sequence[QuestionOutcome], passages: int, nearest_only: int | None, all_read: bool
) -> AccuracyFigures:
    """Returns the accuracy after `passages` passages.

    `nearest_only`: the number of nearest passages whose answers count; None for all of the reply.
    `all_read`: whether the reply lists all passages that should be read, so that recall is known.
    """
    matches, overlaps, in_sentence, by_answer, by_passage = [], [], [], [], []
    for outcome in outcomes:
        question, nearest = outcome.question, _nearest(outcome.reply, nearest_only)
        best = max(nearest, key=lambda answer: answer.score, default=answer_pb2.Answer())
        # an accepted answer may be an article alone, which is compared as an empty text
        matches.append(bool(nearest) and exact_match(best.text, question.answers))
        overlaps.append(f1(best.text, question.answers) if nearest else 0.0)
        in_sentence.append(_contains(sentence_of(best), question.answers))
        by_answer.append(any(_contains(a.passage.text, question.answers) for a in nearest))
        if question.context is not None:
            by_passage.append(any(same_words(a.passage.text, question.context) for a in nearest))
    has_sentences = any(
        answer.HasField("sentence_end")
        for outcome in outcomes
        for answer in (outcome.reply.answers if outcome.reply else ())
    )
    return AccuracyFigures(
        passages=passages,
        exact_match=100 * mean(matches),
        f1=100 * mean(overlaps),
        in_sentence=100 * mean(in_sentence) if has_sentences else None,
        recall_by_answer=100 * mean(by_answer) if all_read else None,
        recall_by_passage=100 * mean(by_passage) if by_passage and all_read else None,
    )


def _nearest(
    reply: answer_pb2.AnswerResponse | None, passages: int | None
) -> list[answer_pb2.Answer]:
    """Returns the answers of the `passages` nearest passages; all answers for None."""
    if reply is None:
        return []
    order = sorted(reply.answers, key=lambda a: (a.hybrid_distance, a.passage.id))
    return order[:passages]


def _contains(text: str, answers: Sequence[str]) -> bool:
    words = f" {normalise(text)} "
    return any(f" {answer} " in words for answer in map(normalise, answers) if answer)


def sentence_of(answer: answer_pb2.Answer) -> str:
    """The sentence of an answer; empty from an old front node."""
    return answer.passage.text[answer.sentence_start : answer.sentence_end]


def same_words(text: str, context: str) -> bool:
    """Whether two texts are equal except for white space."""
    return text.split() == context.split()
