"""Writes replies as JSON lines, to inspect answers and their scores."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from winnow.cli.asking import QuestionOutcome, reported_max_loss
from winnow.cli.evaluation.tally import same_words, sentence_of
from winnow.files.result_files import convert_write_errors
from winnow.v1 import answer_pb2


def write_replies(outcomes: Iterable[QuestionOutcome], path: Path) -> None:
    """Writes a line for each question: its accepted answers, and the returned answers, best first.

    Raises WinnowError if the file cannot be written.
    """
    with convert_write_errors(path), path.open("w", encoding="utf-8") as file:
        for outcome in outcomes:
            file.write(json.dumps(_row(outcome), ensure_ascii=False) + "\n")


def _row(outcome: QuestionOutcome) -> dict[str, Any]:
    answers = outcome.reply.answers if outcome.reply is not None else []
    return {
        "question": outcome.question.question,
        "accepted": outcome.question.answers,
        "milliseconds": round(outcome.seconds * 1e3, 2),
        "failed": outcome.reply is None,
        "max_loss": outcome.reply and reported_max_loss(outcome.reply),
        "error": outcome.error,
        "answers": [_answer(answer, outcome.question.context) for answer in answers],
    }


def _answer(answer: answer_pb2.Answer, context: str | None) -> dict[str, Any]:
    return {
        "text": answer.text,
        "sentence": sentence_of(answer),
        "passage": answer.passage.id,
        "title": answer.passage.title,
        "score": answer.score,
        "relevance": answer.relevance,
        "span_score": answer.span_score,
        "distance": answer.distance,
        "hybrid_distance": answer.hybrid_distance,
        "confidence": answer.confidence if answer.HasField("confidence") else None,
        "gold": context is not None and same_words(answer.passage.text, context),
    }
