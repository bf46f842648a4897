"""`winnow evaluate`."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from winnow.client import Credentials
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.domain.question import ReadScope, Retriever
from winnow.telemetry.progress import Progress
from winnow.tools.access import with_credentials
from winnow.tools.addresses import DEFAULT_ADDRESS, FrontAddress
from winnow.tools.evaluation.replies import write_replies
from winnow.tools.evaluation.run import ask_all
from winnow.tools.evaluation.tally import Outcome, Report, report
from winnow.tools.failures import Failures
from winnow.tools.filtering import Where
from winnow.tools.outputs import reserved
from winnow.tools.questions import AskedQuestion, expect_answers, read_questions
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
    max_loss: Annotated[
        float,
        typer.Option(
            min=0,
            max=100,
            help="Exact match, in percent, to give up for speed; 0 reads every passage.",
        ),
    ] = 0.0,
    read_scope: Annotated[
        ReadScope | None,
        typer.Option(
            help="Read the best passages of the whole cluster, or of each shard.",
            show_default="the server's",
        ),
    ] = None,
    retriever: Annotated[
        Retriever | None,
        typer.Option(
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
    """
    hybrid = retriever in (None, Retriever.HYBRID)
    if max_loss and (not hybrid or read_scope is ReadScope.PER_SHARD):
        raise typer.BadParameter("--max-loss needs hybrid retrieval and the global scope")
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
        outcomes = asyncio.run(_run(address, asked, request, clients, timeout, credentials))
        found = report(outcomes, passages_to_read)
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
) -> list[Outcome]:
    async with AnswerClient(address, credentials=credentials) as client:
        await client.expect_serving()
        with Progress() as progress:
            progress.start("asking", len(asked))
            return await ask_all(client, asked, request, clients, timeout, progress.advance)


def _show(found: Report) -> None:
    console = Console(highlight=False)
    table = Table("passages", "exact match", "F1", "recall (answer)", "recall (passage)")
    for figures in found.figures:
        gold = figures.recall_by_passage
        table.add_row(
            str(figures.passages),
            f"{figures.exact_match:.1f}",
            f"{figures.f1:.1f}",
            f"{figures.recall_by_answer:.1f}",
            "" if gold is None else f"{gold:.1f}",
        )
    console.print(table)
    console.print(
        f"{found.questions} questions, {found.failed} failed, {found.incomplete} not complete; "
        f"{found.passages_read:.1f} passages read each; "
        f"p50 {found.p50_ms:.1f} ms, p95 {found.p95_ms:.1f} ms, p99 {found.p99_ms:.1f} ms"
    )
    if found.without_answers:
        console.print(f"{found.without_answers} have no answers: asked, but not in the table")
    for line in Failures(found.errors, found.said).lines():
        console.print(line, markup=False, soft_wrap=True)
