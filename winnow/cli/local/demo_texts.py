"""Asks the demo's questions, predicts its texts, and builds tables of the results."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from winnow.cli.output import table
from winnow.client import AsyncClient, HeadPrediction
from winnow.errors import ArtefactError
from winnow.labelled_questions import LabelledQuestion
from winnow.text.scores import exact_match

_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class DemoText:
    """A text, and the expected prediction of each head."""

    text: str
    expected: dict[str, set[str]]
    """Expected labels or entities, by head."""
    is_question: bool
    """Whether to ask the text as a question with these heads, instead of only predicting."""


@dataclass(frozen=True, slots=True)
class DemoPrediction:
    """The prediction of one head for a demo text."""

    text: DemoText
    head: str
    words: tuple[str, ...]
    """Predicted labels or entities."""
    right: bool


def read_texts(path: Path) -> list[DemoText]:
    """Reads demo texts from JSON lines. Raises ArtefactError if the file has none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [
            DemoText(
                row.get("question") or row["text"],
                {head: set(words) for head, words in row["heads"].items()},
                "question" in row,
            )
            for row in map(json.loads, lines)
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtefactError(f"{path} has no demo texts: {error!r}") from error


def questions_table() -> Table:
    """An empty table for `ask_questions`."""
    words = ("question", "answer", "passage")
    return table(("", *words, "score", "ms"), words=words)


async def ask_questions(
    client: AsyncClient, questions: Sequence[LabelledQuestion], rows: Table
) -> int:
    """Asks the questions in turn, adds a row for each, and returns the number of wrong answers.

    Raises WinnowError if a question cannot be answered.
    """
    wrong = 0
    for each in questions:
        started = time.perf_counter()
        reply = await client.ask(each.question, timeout=_TIMEOUT)
        elapsed_ms = (time.perf_counter() - started) * 1e3
        best = reply.answers[0] if reply.answers else None
        answer = best.text if best else ""
        right = exact_match(answer, each.answers)
        wrong += not right
        rows.add_row(
            _mark(right),
            Text(each.question),
            Text(answer),
            Text(best.passage.title if best else ""),
            f"{best.score if best else 0:.2f}",
            f"{elapsed_ms:.0f}",
        )
    return wrong


async def predict_texts(
    client: AsyncClient, texts: Sequence[DemoText]
) -> AsyncIterator[DemoPrediction]:
    """Yields the prediction of each head for each text. Raises WinnowError if a call fails."""
    for each in texts:
        heads = list(each.expected)
        if each.is_question:
            predictions = (await client.ask(each.text, timeout=_TIMEOUT, heads=heads)).heads
        else:
            reply = await client.predict(each.text, heads, timeout=_TIMEOUT)
            predictions = reply.results[0].heads
        for prediction in predictions:
            words = _words(prediction)
            right = not prediction.failure and set(words) == each.expected[prediction.head_id]
            yield DemoPrediction(each, prediction.head_id, words, right)


def predictions_table(predictions: Sequence[DemoPrediction]) -> Table:
    """A table with one row for each prediction."""
    rows = []
    for each in predictions:
        kind = " (asked as a question)" if each.text.is_question else ""
        words = Text(", ".join(each.words) or "nothing")
        rows.append((_mark(each.right), Text(f"{each.text.text}{kind}"), each.head, words))
    return table(("", "text", "head", "prediction"), rows, words={"text", "head", "prediction"})


def _mark(right: bool) -> Text:
    return Text("✓", style="green") if right else Text("✗", style="red")


def _words(prediction: HeadPrediction) -> tuple[str, ...]:
    """Returns the assigned labels, then the entities; only the failure if the head failed."""
    if prediction.failure:
        return (prediction.failure,)
    labels = tuple(each.label for each in prediction.labels if each.assigned)
    return labels + tuple(each.text for each in prediction.entities)
