"""Asking the demo questions and showing what came back."""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from rich.table import Table

from winnow.cli.questions import AskedQuestion
from winnow.client.messages import AnswerClient
from winnow.text.scores import exact_match
from winnow.v1 import answer_pb2

_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class DemoReply:
    """A demo question and the reply to it."""

    question: str
    answer: str
    title: str
    score: float
    milliseconds: float
    right: bool


async def ask_questions(
    client: AnswerClient, questions: Sequence[AskedQuestion]
) -> AsyncIterator[DemoReply]:
    """Asks one question after the other; raises a WinnowError if one cannot be answered."""
    for each in questions:
        started = time.perf_counter()
        reply = await client.ask(answer_pb2.AnswerRequest(question=each.question), _TIMEOUT)
        spent = (time.perf_counter() - started) * 1e3
        best = reply.answers[0] if reply.answers else answer_pb2.Answer()
        right = exact_match(best.text, each.answers)
        yield DemoReply(each.question, best.text, best.passage.title, best.score, spent, right)


def empty_table() -> Table:
    """The table that rows are added to."""
    table = Table("", "question", "answer", "passage", show_lines=False)
    table.add_column("score", justify="right")
    table.add_column("ms", justify="right")
    return table


def add(table: Table, asked: DemoReply) -> None:
    """Adds a row; wrong answers stand out."""
    mark = "[green]✓[/]" if asked.right else "[red]✗[/]"
    table.add_row(
        mark, asked.question, asked.answer, asked.title,
        f"{asked.score:.2f}", f"{asked.milliseconds:.0f}",
    )  # fmt: skip
