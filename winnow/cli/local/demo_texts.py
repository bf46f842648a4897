"""Asks the questions of the demo, predicts its texts, and makes tables of the results."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from winnow.cli.output import table
from winnow.cli.questions import LabelledQuestion
from winnow.client import AsyncClient, HeadPrediction
from winnow.errors import ArtefactError
from winnow.text.scores import exact_match

_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class DemoText:
    """A text, and the exact prediction that each head should make for it."""

    text: str
    expected: dict[str, set[str]]
    """Labels or entities, by head."""
    asked: bool
    """Whether it is asked as a question, with the heads beside the answer."""


@dataclass(frozen=True, slots=True)
class DemoPrediction:
    """The prediction of one head."""

    text: DemoText
    head: str
    words: tuple[str, ...]
    right: bool


def read_texts(path: Path) -> list[DemoText]:
    """The texts of a file of JSON lines; raises ArtefactError if it has none."""
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
    client: AsyncClient, questions: Sequence[LabelledQuestion], shown: Table
) -> int:
    """Asks one question after the other, and adds a row for each; returns how many are wrong.

    Raises WinnowError if a question cannot be answered.
    """
    wrong = 0
    for each in questions:
        started = time.perf_counter()
        reply = await client.ask(each.question, timeout=_TIMEOUT)
        spent = (time.perf_counter() - started) * 1e3
        best = reply.answers[0] if reply.answers else None
        answer = best.text if best else ""
        right = exact_match(answer, each.answers)
        wrong += not right
        shown.add_row(
            _mark(right),
            Text(each.question),
            Text(answer),
            Text(best.passage.title if best else ""),
            f"{best.score if best else 0:.2f}",
            f"{spent:.0f}",
        )
    return wrong


async def predict_texts(
    client: AsyncClient, texts: Sequence[DemoText]
) -> AsyncIterator[DemoPrediction]:
    """Yields the prediction of each head for each text; raises WinnowError if there is none."""
    for each in texts:
        heads = list(each.expected)
        if each.asked:
            predictions = (await client.ask(each.text, timeout=_TIMEOUT, heads=heads)).heads
        else:
            found = await client.predict(each.text, heads, timeout=_TIMEOUT)
            predictions = found.results[0].heads
        for one in predictions:
            words = _words(one)
            right = not one.failure and set(words) == each.expected[one.head_id]
            yield DemoPrediction(each, one.head_id, words, right)


def predictions_table(predictions: Sequence[DemoPrediction]) -> Table:
    """One row for each prediction."""
    rows = []
    for each in predictions:
        kind = " (with its answer)" if each.text.asked else ""
        words = Text(", ".join(each.words) or "nothing")
        rows.append((_mark(each.right), Text(f"{each.text.text}{kind}"), each.head, words))
    return table(("", "text", "head", "says"), rows, words={"text", "head", "says"})


def _mark(right: bool) -> Text:
    return Text("✓", style="green") if right else Text("✗", style="red")


def _words(prediction: HeadPrediction) -> tuple[str, ...]:
    """The label that a text is given, or its entities; the failure if the head failed."""
    if prediction.failure:
        return (prediction.failure,)
    labels = tuple(each.label for each in prediction.labels if each.assigned)
    return labels + tuple(each.text for each in prediction.entities)
