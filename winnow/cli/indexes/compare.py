"""`winnow indexes compare`: the answers of two indexes to the same questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from winnow import signals
from winnow.address import DEFAULT_ADDRESS
from winnow.cli import options
from winnow.cli.access import with_credentials
from winnow.cli.asking import QuestionOutcome, ask_all, count_failures
from winnow.cli.output import AsJson, console, print_json, table
from winnow.client import Credentials
from winnow.client.messages import AnswerClient
from winnow.labelled_questions import LabelledQuestion, read_questions
from winnow.quoting import many
from winnow.telemetry.progress import StageProgress
from winnow.text.scores import exact_match
from winnow.v1 import answer_pb2

_SHOWN = 10
"""Number of different answers that are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentAnswer:
    """A question that the indexes answer differently."""

    question: str
    first: str
    """Answer of the first index; empty if it has none."""
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerComparison:
    """The result of `winnow indexes compare`. Field names are keys of its JSON."""

    questions: int
    failed: int
    """Number of questions that failed at an index."""
    same: int
    """Number of questions with the same answer."""
    exact_match: tuple[float, float] | None
    """Exact match of each index in percent; None if no question has accepted answers."""
    different: tuple[DifferentAnswer, ...]


@with_credentials
def compare(
    first: Annotated[str, typer.Argument(help="Name of an index, such as the present one.")],
    second: Annotated[str, typer.Argument(help="Name of another index, such as its copy.")],
    questions: Annotated[
        Path, typer.Option(help="JSON lines with question and optional answers (.gz, .zst).")
    ],
    address: options.FrontAddress = DEFAULT_ADDRESS,
    passages_to_read: options.PassagesToRead = 10,
    tenant: options.NamedTenant = "",
    clients: Annotated[
        int, typer.Option(min=1, max=1024, help="Questions to ask in parallel.")
    ] = 1,
    timeout: options.Timeout = 10.0,
    as_json: AsJson = False,
    credentials: Credentials | None = None,
) -> None:
    """Ask two indexes the same questions, and compare their answers.

    Example: winnow indexes compare docs-1 docs-2 --questions questions.jsonl

    Shows how many answers are the same, exact match if the file has accepted answers, and questions
    with different answers. Exit code 1 if a question fails.
    """
    asked = read_questions(questions)

    async def run() -> list[list[QuestionOutcome]]:
        async with AnswerClient(address, credentials=credentials) as client:
            await client.expect_serving()
            with StageProgress() as progress:
                outcomes = []
                for name in (first, second):
                    progress.start(f"asking {name}", len(asked))
                    request = answer_pb2.AnswerRequest(
                        index=name, tenant=tenant, passages_to_read=passages_to_read, fresh=True
                    )
                    outcomes.append(
                        await ask_all(
                            client,
                            asked,
                            request,
                            clients=clients,
                            timeout=timeout,
                            advance=progress.advance,
                        )
                    )
                return outcomes

    outcomes = signals.run(run())
    for name, each in zip((first, second), outcomes, strict=True):
        for line in failures(name, each):
            typer.echo(line, err=True)
    result = compared(asked, *outcomes)
    if as_json:
        print_json(result)
    else:
        _show(result, first, second)
    raise typer.Exit(1 if result.failed else 0)


def compared(
    asked: Sequence[LabelledQuestion],
    first: Sequence[QuestionOutcome],
    second: Sequence[QuestionOutcome],
) -> AnswerComparison:
    """Compares the outcomes of two indexes, which are in the order of the questions."""
    pairs = [
        (question, one.reply, other.reply)
        for question, one, other in zip(asked, first, second, strict=True)
    ]
    answers = [
        (question, _answer(one), _answer(other))
        for question, one, other in pairs
        if one is not None and other is not None
    ]
    labelled = [each for each in answers if each[0].answers]
    different = tuple(
        DifferentAnswer(question=question.question, first=one, second=other)
        for question, one, other in answers
        if one != other
    )
    return AnswerComparison(
        questions=len(pairs),
        failed=len(pairs) - len(answers),
        same=len(answers) - len(different),
        exact_match=(
            _percent([exact_match(one, each.answers) for each, one, _ in labelled]),
            _percent([exact_match(other, each.answers) for each, _, other in labelled]),
        )
        if labelled
        else None,
        different=different,
    )


def failures(name: str, outcomes: Sequence[QuestionOutcome]) -> list[str]:
    """Returns a line for each gRPC status with which questions failed at an index."""
    counted = count_failures(each.error for each in outcomes if each.error)
    return [f"{name}: {line}" for line in counted.lines()]


def _answer(reply: answer_pb2.AnswerResponse) -> str:
    return str(reply.answers[0].text) if reply.answers else ""


def _percent(matches: Sequence[bool]) -> float:
    return 100 * sum(matches) / len(matches)


def _show(result: AnswerComparison, first: str, second: str) -> None:
    typer.echo(
        f"{many(result.questions, 'question')}, {result.failed} failed, {result.same} with the "
        "same answer"
    )
    if result.exact_match is not None:
        one, other = result.exact_match
        typer.echo(f"exact match: {first} {one:.1f}, {second} {other:.1f}")
    if result.different:
        rows = [(each.question, each.first, each.second) for each in result.different[:_SHOWN]]
        columns = ["question", first, second]
        shown = table(columns, words=set(columns))
        for row in rows:
            shown.add_row(*row)
        console().print(shown)
