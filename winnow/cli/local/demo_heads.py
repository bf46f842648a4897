"""Predicting the demo texts, and showing what the heads said."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from winnow.client import AsyncClient, HeadPrediction
from winnow.errors import ArtefactError

_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class DemoText:
    """A text, and what each head should say of it: its label, or its entities; nothing else."""

    text: str
    expected: dict[str, set[str]]
    """By head."""
    asked: bool
    """Whether it is asked as a question, with the heads beside the answer."""


@dataclass(frozen=True, slots=True)
class DemoPrediction:
    """What one head said."""

    text: DemoText
    head: str
    words: tuple[str, ...]
    right: bool


def read_texts(path: Path) -> list[DemoText]:
    """The texts of a file of JSON lines; raises ArtefactError if it is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return [
            DemoText(
                row.get("question") or row["text"],
                {head: set(words) for head, words in row["heads"].items()},
                "question" in row,
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtefactError(f"{path} has no demo texts: {error!r}") from error


async def predict_texts(
    client: AsyncClient, texts: Sequence[DemoText]
) -> AsyncIterator[DemoPrediction]:
    """Has each text predicted; raises a WinnowError if one cannot be."""
    for each in texts:
        heads = list(each.expected)
        if each.asked:
            said = (await client.ask(each.text, timeout=_TIMEOUT, heads=heads)).heads
        else:
            said = (await client.predict(each.text, heads, timeout=_TIMEOUT)).results[0].heads
        for one in said:
            words = _words(one)
            right = not one.failure and set(words) == each.expected[one.head_id]
            yield DemoPrediction(each, one.head_id, words, right)


def predictions_table() -> Table:
    """The table that rows are added to."""
    return Table("", "text", "head", "says", show_lines=False)


def add_said(table: Table, said: DemoPrediction) -> None:
    """Adds a row; wrong predictions stand out."""
    mark = "[green]✓[/]" if said.right else "[red]✗[/]"
    kind = " (with its answer)" if said.text.asked else ""
    table.add_row(
        mark,
        escape(f"{said.text.text}{kind}"),
        said.head,
        escape(", ".join(said.words) or "nothing"),
    )


def _words(said: HeadPrediction) -> tuple[str, ...]:
    """The label that a text is given, or its entities."""
    if said.failure:
        return (said.failure,)
    labels = tuple(each.label for each in said.labels if each.assigned)
    return labels + tuple(each.text for each in said.entities)
