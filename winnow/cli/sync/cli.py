"""`winnow sync`."""

import hashlib
import os
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from winnow import signals
from winnow.cli.access import with_credentials
from winnow.cli.feed.batches import FeedBatch
from winnow.cli.feed.job import FeedProgress
from winnow.cli.options import FrontAddress, NamedIndex, NamedTenant, Patience, Timeout
from winnow.cli.output import AsJson, print_json, printable
from winnow.cli.sync.job import FolderSync, SyncOptions, SyncReport
from winnow.cli.sync.watching import changes_of, keep_synced
from winnow.client import AsyncClient, Credentials, WriteResult
from winnow.client.feeding import DEFAULT_FEED_ADDRESS
from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.folder import FilePatterns
from winnow.documents.options import BaseUrl, Exclude, Include
from winnow.documents.passages import UPLOADED
from winnow.domain.listing import DOCUMENT, DOCUMENT_HASH, StoredDocument
from winnow.files.lock import locked
from winnow.filtering.writing import format_value
from winnow.quoting import many

_HAS_CHECKSUM = f"exists {DOCUMENT_HASH}"


@with_credentials
def sync(
    folder: Annotated[Path, typer.Argument(help="Folder of documents.")],
    address: FrontAddress = DEFAULT_FEED_ADDRESS,
    on: NamedIndex = "",
    tenant: NamedTenant = "",
    include: Include = None,
    exclude: Exclude = None,
    base_url: BaseUrl = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
    replace_all: Annotated[
        bool,
        typer.Option(
            "--replace-all",
            help="Allow a sync that removes all documents of the index, because the folder has "
            "none of them.",
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running, and sync again when files change.")
    ] = False,
    patience: Patience = 120.0,
    timeout: Timeout = 60.0,
    as_json: AsJson = False,
    credentials: Credentials | None = None,
) -> None:
    """Make a running index equal to a folder of documents.

    Example: winnow sync docs --address 127.0.0.1:8081

    New documents are added, changed ones replaced, and documents that are gone are removed. An
    unchanged file costs only a checksum. Uploaded documents and passages without a checksum of
    their document stay. A file that cannot be converted is named, and the index keeps what it has
    of it. Run the same command again after an interruption.

    Exit codes:
      0 the index has every document that could be converted
      1 a request failed; run the same command again
      2 wrong usage
      130 Ctrl-C
    """
    if watch and dry_run:
        raise typer.BadParameter("--watch does nothing with --dry-run", param_hint="--watch")
    options = SyncOptions(
        folder=folder,
        patterns=FilePatterns(tuple(include or ()), tuple(exclude or ())),
        base_url=base_url,
        dry_run=dry_run,
        patience=patience,
        replace_all=replace_all,
    )
    began = time.perf_counter()

    def show(report: SyncReport) -> None:
        _show(report, time.perf_counter() - began, as_json, dry_run)

    with (
        lock_sync(folder, address, on, tenant),
        FeedProgress() as progress,
        DocumentConverter() as converter,
    ):
        job = FolderSync(options, converter.convert, progress)

        async def run() -> None:
            async with AsyncClient(
                address, credentials=credentials, index=on, tenant=tenant
            ) as client:
                index = ClientIndex(client, timeout)
                if not watch:
                    show(await job.run(index))
                    return
                await keep_synced(
                    job,
                    index,
                    changes_of(folder),
                    on_report=show,
                    on_error=lambda error: progress.say(f"sync failed, and is repeated: {error}"),
                )

        signals.run(run())


def lock_sync(
    folder: Path, address: str, index: str = "", tenant: str = ""
) -> AbstractContextManager[None]:
    """Locks a folder and an index against other syncs of the same user on this machine."""
    target = "\0".join(filter(None, (address, index, tenant)))
    pair = hashlib.sha256(f"{folder.resolve()}\0{target}".encode(errors="surrogateescape"))
    name = f"winnow-sync-{os.getuid()}-{pair.hexdigest()[:16]}"
    return locked(
        Path(tempfile.gettempdir(), name),
        f"another sync of {folder} to {address} is running: wait until it ends, or stop it",
    )


class ClientIndex:
    """The documents of an index, through a client."""

    def __init__(self, client: AsyncClient, timeout: float) -> None:
        """`timeout`: of each request, in seconds."""
        self._client, self._timeout = client, timeout

    async def documents(self, limit: float) -> Sequence[StoredDocument]:
        listed = self._client.list_documents(_HAS_CHECKSUM, timeout=min(self._timeout, limit))
        return [each async for each in listed]

    async def uploaded(self, limit: float) -> Collection[str]:
        where = f"{DOCUMENT_HASH} >= {format_value(UPLOADED)}"
        listed = self._client.list_documents(where, timeout=min(self._timeout, limit))
        return {each.name async for each in listed}

    async def passage_ids(self, document: str, limit: float) -> Sequence[str]:
        where = f"{DOCUMENT} = {format_value(document)} and {_HAS_CHECKSUM}"
        listed = self._client.list_passages(
            where=where, fields=["id"], timeout=min(self._timeout, limit)
        )
        return [each.id async for each in listed]

    async def store(self, batch: FeedBatch, limit: float) -> Sequence[WriteResult]:
        return await self._client.put(batch.fields(), timeout=min(self._timeout, limit))

    async def delete(self, ids: Sequence[str], limit: float) -> Sequence[WriteResult]:
        return await self._client.delete(ids, timeout=min(self._timeout, limit))


def _show(report: SyncReport, seconds: float, as_json: bool, dry_run: bool) -> None:
    plan = report.plan
    counts = {
        "added": len(plan.added),
        "replaced": len(plan.replaced),
        "removed": len(plan.removed),
        "unchanged": len(plan.unchanged),
    }
    if as_json:
        print_json({**counts, "skipped": report.skipped, "seconds": round(seconds, 3)})
        return
    for verb, names in (("add", plan.added), ("replace", plan.replaced), ("remove", plan.removed)):
        for name in names if dry_run else ():
            typer.echo(f"would {verb} {printable(name)}")
    for each in report.skipped:
        what = "incomplete" if each.is_indexed else "skipped"
        typer.echo(f"{what}: {printable(each.name)}: {printable(each.reason)}", err=True)
    summary = ", ".join(f"{count} {name}" for name, count in counts.items())
    typer.echo(f"{many(sum(counts.values()), 'document')}: {summary}")
