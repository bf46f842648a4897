"""The folder of documents that `winnow up` indexes and serves."""

from collections.abc import Callable
from pathlib import Path

import typer

from winnow.bundle import read_manifest
from winnow.cli.feed.job import FeedProgress
from winnow.cli.local.hints import FrontRequirements
from winnow.cli.local.processes import run_to_end
from winnow.cli.local.settings import UpSettings
from winnow.cli.output import printable
from winnow.cli.sync.cli import ClientIndex
from winnow.cli.sync.job import FolderSync, SyncOptions, SyncReport
from winnow.cli.sync.watching import changes_of, keep_synced
from winnow.client import AsyncClient
from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.folder import SkippedFile
from winnow.documents.formats.registry import require_libraries
from winnow.errors import ArtefactError
from winnow.quoting import many

_TIMEOUT = 60.0
"""Timeout of a request that syncs the folder, in seconds."""


class _Silent(FeedProgress):
    """Shows no stages, since the logs of the cluster are shown."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        pass


class ServedFolder:
    """A folder of documents, whose index follows its changes."""

    def __init__(self, path: Path, settings: UpSettings) -> None:
        """Raises WinnowError if a library of the extra `documents` is missing."""
        require_libraries()
        self._path, self._settings = path, settings

    def build_if_missing(self) -> None:
        """Builds the index unless it exists.

        Raises ArtefactError if the folder does not exist, and typer.Exit if the build fails.
        """
        if not self._path.is_dir():
            problem = "is not a folder" if self._path.exists() else "does not exist"
            raise ArtefactError(f"{self._path} {problem}: give a folder of documents")
        index = self._settings.directory
        if index.exists():
            return
        try:
            index.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArtefactError(
                f"cannot make {index.parent}: {error.strerror}; choose another directory with "
                "--index"
            ) from error
        bundle = self._settings.bundle
        words = ["index", "build", "--documents", str(self._path), "--out", str(index)]
        words += ["--bundle", str(bundle)]
        words += ["--states"] * (read_manifest(bundle).reader.apart is not None)
        if code := run_to_end(words):
            raise typer.Exit(code)

    async def follow(
        self, address: str, requirements: FrontRequirements, say: Callable[[str], None]
    ) -> None:
        """Syncs the folder to the front node at `address`, now and after each change.

        Says so if it cannot go on. The cluster then serves the index as it is.
        """
        if requirements.flags():
            say(
                "the front node requires credentials, so the index does not follow the folder; run "
                f"winnow sync {self._path} --watch --address {address}{requirements.flags()}"
            )
            return

        reported: set[SkippedFile] = set()

        def report(result: SyncReport) -> None:
            for each in result.skipped:
                if each not in reported:
                    what = "incomplete" if each.is_indexed else "skipped"
                    say(f"{what}: {printable(each.name)}: {printable(each.reason)}")
            reported.clear()
            reported.update(result.skipped)
            plan = result.plan
            changed = len(plan.added) + len(plan.replaced) + len(plan.removed)
            if changed:
                say(f"the index follows {self._path}: {many(changed, 'document')} changed")

        try:
            with DocumentConverter() as converter:
                # the index at the default place in the folder has no other folder's documents
                own = self._settings.index is None
                options = SyncOptions(folder=self._path, replace_all=own)
                sync = FolderSync(options, converter.convert, _Silent())
                async with AsyncClient(address) as client:
                    await keep_synced(
                        sync,
                        ClientIndex(client, _TIMEOUT),
                        changes_of(self._path),
                        on_report=report,
                        on_error=lambda error: say(f"sync failed, and is repeated: {error}"),
                    )
        except Exception as error:  # noqa: BLE001 - otherwise nobody would notice
            say(
                f"the index no longer follows {self._path} ({type(error).__name__}: {error}): "
                "start the command again"
            )
