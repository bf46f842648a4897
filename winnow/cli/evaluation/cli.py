"""`winnow evaluate`."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import typer

from winnow import signals
from winnow.address import DEFAULT_ADDRESS
from winnow.cli import options
from winnow.cli.access import with_credentials
from winnow.cli.asking import Failures, IndexTarget, QuestionOutcome, QuestionTarget, ask_all
from winnow.cli.evaluation.replies import write_replies
from winnow.cli.evaluation.tally import Report, build_report
from winnow.cli.output import AsJson, console, print_json, table
from winnow.client import Credentials
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.files.result_files import reserve_files
from winnow.labelled_questions import read_questions, require_answers
from winnow.quoting import many
from winnow.telemetry.progress import StageProgress
from winnow.v1 import answer_pb2

_COLUMNS = (
    *("passages", "exact match", "F1", "in sentence"),
    *("recall (answer)", "recall (passage)"),
)


@with_credentials
def evaluate(
    questions: Annotated[
        Path,
        typer.Option(help="JSON lines with question, answers and optional context (.gz, .zst)."),
    ],
    address: options.FrontAddress = DEFAULT_ADDRESS,
    index: options.IndexDirectory = None,
    tenant: options.NamedTenant = "",
    passages_to_read: options.PassagesToRead = 10,
    max_loss: options.MaxLoss = None,
    read_scope: options.ReadScopeOption = None,
    retriever: options.RetrieverOption = None,
    where: options.FilterOption = "",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Ask only the first questions, up to this number.", show_default="all"
        ),
    ] = None,
    clients: Annotated[
        int,
        typer.Option(
            min=1, max=1024, help="Questions to ask in parallel; use 1 to measure latencies."
        ),
    ] = 1,
    timeout: options.Timeout = 10.0,
    replies: Annotated[
        Path | None, typer.Option(help="Also write the answers to this file, as JSON lines.")
    ] = None,
    as_json: AsJson = False,
    credentials: Credentials | None = None,
) -> None:
    """Ask every question of a file, and measure the accuracy of the answers.

    The questions go to a running system or, with --index, to an index in this process.

    Shows exact match and F1 as SQuAD defines them, the share of answers whose sentence contains
    an accepted answer, recall by answer string and by gold passage, and latency percentiles.
    Accuracy is shown for 1, 2, 5, 10 … passages, up to --passages-to-read; with --read-scope
    per-shard, only for --passages-to-read in each shard. A failed question counts as wrong. Exit
    code 1 if every question fails.

    With early stopping, fewer passages may be read than shown, and recall is not measured. Use
    --max-loss 0 to measure recall, and for `winnow models record`.
    """
    options.check_max_loss(max_loss, read_scope, retriever)
    labelled = read_questions(questions, limit)
    require_answers(labelled, questions)
    request = answer_pb2.AnswerRequest(
        passages_to_read=passages_to_read,
        answers=100,
        max_loss=max_loss,
        read_scope=convert.read_scope_message(read_scope),
        retriever=convert.retriever_message(retriever),
        fresh=True,
        filter=where,
        tenant=tenant,
    )

    async def run() -> list[QuestionOutcome]:
        async with _open_target(index, address, credentials) as client:
            with StageProgress() as progress:
                progress.start("asking", len(labelled))
                return await ask_all(
                    client,
                    labelled,
                    request,
                    clients=clients,
                    timeout=timeout,
                    advance=progress.advance,
                )

    with reserve_files(replies):
        outcomes = signals.run(run())
        result = build_report(outcomes, passages_to_read, max_loss)
        try:
            if as_json:
                print_json(result)
            else:
                _show(result)
        finally:  # even if printing fails, as on a closed pipe
            if replies is not None:
                write_replies(outcomes, replies)
    raise typer.Exit(1 if result.failed == result.questions else 0)


@contextlib.asynccontextmanager
async def _open_target(
    index: Path | None, address: str, credentials: Credentials | None
) -> AsyncIterator[QuestionTarget]:
    """Yields an index that is open in this process, or a client of a front node that serves."""
    if index is not None:
        from winnow import AsyncIndex  # noqa: PLC0415 (not to ask a front node)

        async with AsyncIndex.open(index) as opened:
            yield IndexTarget(opened)
        return
    async with AnswerClient(address, credentials=credentials) as client:
        await client.expect_serving()
        yield client


def _show(result: Report) -> None:
    rows = []
    for each in result.figures:
        figures = (
            *(each.exact_match, each.f1, each.in_sentence),
            *(each.recall_by_answer, each.recall_by_passage),
        )
        texts = ("" if figure is None else f"{figure:.1f}" for figure in figures)
        rows.append((str(each.passages), *texts))
    console().print(table(_COLUMNS, rows))
    needed = "" if result.passages_needed is None else f", {result.passages_needed:.1f} needed"
    typer.echo(
        f"{many(result.questions, 'question')}, {result.failed} failed, {result.incomplete} not "
        f"complete; {result.passages_read:.1f} passages read each{needed}; "
        f"p50 {result.p50_ms:.1f} ms, p95 {result.p95_ms:.1f} ms, p99 {result.p99_ms:.1f} ms"
    )
    if result.max_loss != 0:
        loss = "max_loss unknown" if result.max_loss is None else f"max_loss {result.max_loss:g}"
        typer.echo(f"reading may have stopped early ({loss}): no recall")
        typer.echo("--max-loss 0 reads every passage")
    if result.dimmed:
        typer.echo(
            f"fewer passages than requested were read for {many(result.dimmed, 'question')}: the "
            "system was overloaded; use fewer --clients"
        )
    if result.without_answers:
        typer.echo(
            f"{many(result.without_answers, 'question')} without accepted answers: asked, but not "
            f"counted in the table"
        )
    for line in Failures(result.errors, result.said).lines():
        typer.echo(line)
