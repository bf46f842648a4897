"""`winnow feed`."""

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from winnow import signals
from winnow.cli.access import credential_flags, with_credentials
from winnow.cli.feed.batches import FeedBatch
from winnow.cli.feed.job import FeedJob, FeedPlan, FeedProgress
from winnow.cli.feed.resuming import beside
from winnow.cli.feed.source import STDIN
from winnow.cli.options import FrontAddress, NamedIndex, NamedTenant, Patience, Timeout
from winnow.cli.output import print_json
from winnow.client import AsyncClient, Credentials, Outcome, WriteResult
from winnow.client.feeding import DEFAULT_FEED_ADDRESS
from winnow.domain.quota import StorageUse
from winnow.quoting import are, many, were


@with_credentials
def feed(
    file: Annotated[
        Path,
        typer.Argument(
            help="File of passages: TSV (id, text, title) or JSON lines (id, title, text, "
            "metadata, version), plain, .gz or .zst; - for standard input."
        ),
    ],
    address: FrontAddress = DEFAULT_FEED_ADDRESS,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    cut: Annotated[
        bool,
        typer.Option(
            "--cut",
            help="Rows are raw documents: cut each into passages of about 100 words, along its "
            "paragraphs and sentences. The passages of document DOC get the ids DOC#0, DOC#1 … "
            "With --delete, all of these passages are deleted.",
        ),
    ] = False,
    delete: Annotated[
        bool,
        typer.Option(
            "--delete",
            help="Delete the passages with the ids of the rows, instead of storing rows. With "
            "--cut, delete whole documents.",
        ),
    ] = False,
    form: Annotated[
        Literal["jsonl", "tsv"] | None,
        typer.Option("--format", help="Format of the rows.", show_default="by the suffix of FILE"),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Maximum number of requests in flight.")
    ] = 4,
    batch: Annotated[
        int,
        typer.Option(
            min=1,
            max=100,
            help="Number of passages in a request. With --delete, a request has ten times as many "
            "ids.",
        ),
    ] = 50,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Skip bad rows instead of stopping.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted feed of FILE.")
    ] = False,
    resume_file: Annotated[
        Path | None,
        typer.Option(
            help="File for the progress of the feed, which --resume reads.",
            show_default="FILE.feeding; with --on FILE.INDEX.feeding; with --tenant "
            "FILE.tenant=NAME.feeding",
        ),
    ] = None,
    patience: Patience = 120.0,
    timeout: Timeout = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
    credentials: Credentials | None = None,
) -> None:
    """Add passages to a running index, or delete them. Questions are answered meanwhile.

    Example: winnow feed passages.jsonl --address 127.0.0.1:8081

    The front node must have --feed-listen, and the content nodes --feed; `winnow up --feed-listen
    127.0.0.1:8081` sets both. A row replaces the stored passage with the same id. The rows that
    the progress counts are durable. It is safe to send rows again: repeat an interrupted feed, or
    use --resume. If a tenant has a quota, a message tells when 90 % of it is used.

    With --json, one object is printed, with the keys: stored (or deleted), unchanged, outdated
    (a later version is stored), truncated (retrieved by the beginning only), bad_rows, retries,
    line (all rows up to this line are durable), seconds. With --delete --cut, stored and unchanged
    count documents, and passages counts the deleted passages of these documents.

    Exit codes:
      0 every row is durable, except bad rows with --skip-bad-rows
      1 some rows are not durable; stderr says why, and how to resume
      2 wrong usage
      130 Ctrl-C
    """
    plan = FeedPlan(
        file=file,
        form=form,
        cut=cut,
        delete=delete,
        concurrency=concurrency,
        max_rows=batch * (10 if delete else 1),
        skip_bad_rows=skip_bad_rows,
        patience=patience,
        index=on,
        tenant=tenant,
    )
    state = resume_file or (None if file == STDIN else beside(file, on, tenant))
    if resume and state is None:
        raise typer.BadParameter(
            "standard input needs a --resume-file to resume from", param_hint="--resume"
        )
    target = FeedTarget(address, on, tenant, credentials)
    with FeedProgress() as progress:
        job = FeedJob(plan, state, progress)
        began = time.perf_counter()
        try:
            job.prepare(resume)
            signals.run(_run(job, target, timeout))
        except BaseException:
            if job.save_for_resume():
                progress.say(_resume_line(job, target, resume_file))
            raise
        job.remove_resume_file()
    _show(job, time.perf_counter() - began, as_json)


@dataclass(frozen=True, slots=True)
class FeedTarget:
    """The index that rows are sent to."""

    address: str
    """HOST:PORT of a front node."""
    index: str
    """Name of the index; empty for the default index."""
    tenant: str
    """Tenant of the rows; empty if the key decides it, or the index has no tenants."""
    credentials: Credentials | None


async def _run(job: FeedJob, target: FeedTarget, timeout: float) -> None:
    async with AsyncClient(
        target.address,
        credentials=target.credentials,
        index=target.index,
        tenant=target.tenant,
    ) as client:
        await job.run(_ClientFeedWriter(client, job.plan.delete, timeout, job.show_use))


class _ClientFeedWriter:
    """Sends requests with a client, and deletes rows instead of storing them if `delete`."""

    def __init__(
        self,
        client: AsyncClient,
        delete: bool,
        timeout: float,
        show_use: Callable[[StorageUse], None],
    ) -> None:
        """`show_use` is called with what the tenant has stored, if it has a quota."""
        self._client, self._delete, self._timeout = client, delete, timeout
        self._show_use = show_use

    async def store(self, batch: FeedBatch, limit: float) -> Sequence[WriteResult]:
        timeout = min(self._timeout, limit)
        if self._delete:
            versions = {row.passage.id: row.put.version for row in batch.rows}
            return await self._client.delete(versions, timeout=timeout)
        results = await self._client.put(batch.fields(), timeout=timeout)
        if results.storage is not None:
            self._show_use(results.storage)
        return results

    async def delete(self, ids: Sequence[str], limit: float) -> Sequence[WriteResult]:
        return await self._client.delete(ids, timeout=min(self._timeout, limit))


def _resume_line(job: FeedJob, target: FeedTarget, resume_file: Path | None) -> str:
    """A message with the last durable line, and the command that resumes the feed."""
    plan = job.plan
    words = ["winnow", "feed", str(plan.file), "--address", target.address, "--resume"]
    words += ["--on", target.index] if target.index else []
    words += ["--tenant", target.tenant] if target.tenant else []
    words += ["--cut"] * plan.cut + ["--delete"] * plan.delete
    words += ["--skip-bad-rows"] * plan.skip_bad_rows
    words += ["--format", plan.form] if plan.form else []
    words += ["--resume-file", str(resume_file)] if resume_file else []
    words += credential_flags(target.credentials) if target.credentials else []
    return f"all rows up to line {job.line} are durable; to resume: {shlex.join(words)}"


def _show(job: FeedJob, seconds: float, as_json: bool) -> None:
    totals = job.totals
    counts = {outcome.value: totals.outcomes[outcome] for outcome in Outcome}
    bad = job.bad_rows + totals.refused
    if as_json:
        print_json(
            {
                **counts,
                **({"passages": totals.passages} if job.plan.deletes_documents else {}),
                "truncated": totals.truncated,
                "bad_rows": bad,
                "retries": totals.retries,
                "line": job.line,
                "seconds": round(seconds, 3),
            }
        )
        return
    names = {Outcome.STORED.value: "deleted"} if job.plan.delete else {}
    rows = ", ".join(f"{count} {names.get(name, name)}" for name, count in counts.items())
    if job.plan.deletes_documents:
        rows = (
            f"{many(counts[Outcome.STORED.value], 'document')} deleted "
            f"({many(totals.passages, 'passage')}), {counts[Outcome.UNCHANGED.value]} not found"
        )
    typer.echo(f"{job.plan.file}: {rows}")
    if bad:
        typer.echo(f"{were(bad, 'bad row')} left out")
    if totals.truncated:
        typer.echo(
            f"{are(totals.truncated, 'passage')} too long for the encoder: retrieved by the "
            "beginning, and read in full"
        )
