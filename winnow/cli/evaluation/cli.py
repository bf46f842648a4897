"""`winnow evaluate`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from winnow import signals
from winnow.cli.access import with_credentials
from winnow.cli.addresses import DEFAULT_ADDRESS, FrontAddress
from winnow.cli.evaluation.replies import write_replies
from winnow.cli.evaluation.run import ask_all
from winnow.cli.evaluation.tally import QuestionOutcome, Report, report
from winnow.cli.failures import Failures
from winnow.cli.filtering import Where
from winnow.cli.outputs import reserved
from winnow.cli.questions import AskedQuestion, expect_answers, read_questions
from winnow.cli.stopping import MaxLoss, check_max_loss
from winnow.client import Credentials
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.domain.question import ReadScope, Retriever
from winnow.quoting import many
from winnow.telemetry.progress import StageProgress
from winnow.v1 import answer_pb2


@with_credentials
def evaluate(
    questions: Annotated[
        Path,
        typer.Option(help="JSON lines with question, answers and maybe context (.gz, .zst)."),
    ],
    address: FrontAddress = DEFAULT_ADDRESS,
    passages_to_read: Annotated[
        int, typer.Option(min=1, max=100, help="Passages to read for each question.")
    ] = 10,
    max_loss: MaxLoss = None,
    read_scope: Annotated[
        ReadScope | None,
        typer.Option(
            case_sensitive=False,
            help="Read the best passages of the whole cluster, or of each shard.",
            show_default="the server's",
        ),
    ] = None,
    retriever: Annotated[
        Retriever | None,
        typer.Option(
            case_sensitive=False,
            help="Find passages by meaning (dense), by words (sparse), or by both (hybrid).",
            show_default="the server's",
        ),
    ] = None,
    where: Where = "",
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Ask only the first questions, this many.", show_default="all"),
    ] = None,
    clients: Annotated[
        int,
        typer.Option(min=1, max=1024, help="Questions at the same time; 1 for true latencies."),
    ] = 1,
    timeout: Annotated[
        float,
        typer.Option(min=0.001, max=3600, help="Seconds until a question is given up."),
    ] = 10.0,
    replies: Annotated[
        Path | None, typer.Option(help="Also write the answers to this file, as JSON lines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    credentials: Credentials | None = None,
) -> None:
    """Ask a running system every question of a file and say how right it is.

    Shows exact match and F1 as SQuAD defines them, recall by answer string and by gold passage,
    and latency percentiles. Accuracy is shown for every number of passages up to
    --passages-to-read. A failed question counts as wrong. Exit code 1 if every question fails.

    Where reading may stop early, accuracy is of at most so many passages, and recall is left out:
    passages that are not read cannot be recalled. Give --max-loss 0 for recall, and for
    `winnow models record`.
    """
    check_max_loss(max_loss, read_scope, retriever)
    asked = read_questions(questions, limit)
    expect_answers(asked, questions)
    request = answer_pb2.AnswerRequest(
        passages_to_read=passages_to_read,
        answers=100,
        max_loss=max_loss,
        read_scope=convert.read_scope_message(read_scope),
        retriever=convert.retriever_message(retriever),
        fresh=True,
        filter=where,
    )
    with reserved(replies):
        outcomes = signals.run(_run(address, asked, request, clients, timeout, credentials))
        found = report(outcomes, passages_to_read, max_loss)
        try:
            if as_json:
                typer.echo(json.dumps(found.as_json(), indent=2))
            else:
                _show(found)
        finally:  # also if nobody reads what is shown
            if replies is not None:
                write_replies(outcomes, replies)
    raise typer.Exit(1 if found.failed == found.questions else 0)


async def _run(
    address: str,
    asked: list[AskedQuestion],
    request: answer_pb2.AnswerRequest,
    clients: int,
    timeout: float,
    credentials: Credentials | None,
) -> list[QuestionOutcome]:
    async with AnswerClient(address, credentials=credentials) as client:
        await client.expect_serving()
        with StageProgress() as progress:
            progress.start("asking", len(asked))
            return await ask_all(client, asked, request, clients, timeout, progress.advance)


def _show(found: Report) -> None:
    console = Console(highlight=False)
    table = Table("passages", "exact match", "F1", "recall (answer)", "recall (passage)")
    for figures in found.figures:
        recalls = (figures.recall_by_answer, figures.recall_by_passage)
        table.add_row(
            str(figures.passages),
            f"{figures.exact_match:.1f}",
            f"{figures.f1:.1f}",
            *("" if recall is None else f"{recall:.1f}" for recall in recalls),
        )
    console.print(table)
    console.print(
        f"{many(found.questions, 'question')}, {found.failed} failed, {found.incomplete} not "
        f"complete; {found.passages_read:.1f} passages read each{_needed(found)}; "
        f"p50 {found.p50_ms:.1f} ms, p95 {found.p95_ms:.1f} ms, p99 {found.p99_ms:.1f} ms"
    )
    if found.max_loss != 0:
        console.print(f"reading may have stopped early ({_allowed(found)}): no recall")
        console.print("--max-loss 0 reads every passage")
    if found.dimmed:
        console.print(
            f"fewer passages than asked for were read for {many(found.dimmed, 'question')}, since "
            "there was too much to do: give fewer --clients"
        )
    if found.without_answers:
        console.print(
            f"{many(found.without_answers, 'question')} without answers: asked, but not in "
            "the table"
        )
    for line in Failures(found.errors, found.said).lines():
        console.print(line, markup=False, soft_wrap=True)


def _needed(found: Report) -> str:
    """How many passages answers rest on, if the front says so."""
    return "" if found.passages_needed is None else f", {found.passages_needed:.1f} needed"


def _allowed(found: Report) -> str:
    return "no max_loss is told" if found.max_loss is None else f"max_loss {found.max_loss:g}"
