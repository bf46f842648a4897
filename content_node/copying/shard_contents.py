"""Fetches the passages of a shard from its node, as they were after one of its writes."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.indexing.source_index import replay_unmerged
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.merging.names import LIVE
from winnow.content_node.shard.manifest import SHARD_FILE
from winnow.content_node.shard.saving import STORE
from winnow.content_node.transfer.remote import PeerCopy
from winnow.domain.write import Put, Write
from winnow.errors import ArtefactError, NotFoundError, StoppedError, UnavailableError
from winnow.storage.pull import CopyProgress, PulledFile, PullSource, pull_files

_STAGING = "passages.sqlite"


class ShardContents:
    """The passages and the deletions of a shard, in a directory of this process."""

    def __init__(self, directory: Path) -> None:
        """`directory` is empty, and is deleted by the caller."""
        self._directory = directory

    async def fetch(self, copy: PeerCopy, node: str, progress: CopyProgress) -> None:
        """Copies the passages from an open copy of the shard on `node`.

        If the call is cancelled, it ends once nothing is written to the directory any more.

        Raises UnavailableError if the node fails or has closed the copy. Raises ArtefactError if a
        file is damaged, or the directory cannot be written.
        """
        stoppable = _StoppableProgress(progress)
        fetching = asyncio.ensure_future(asyncio.to_thread(self._fetch, copy, node, stoppable))
        try:
            await asyncio.shield(fetching)
        except asyncio.CancelledError:
            stoppable.is_stopped = True
            await asyncio.gather(fetching, return_exceptions=True)
            raise
        except NotFoundError as error:  # after a restart of the node, or a long pause
            raise UnavailableError(str(error)) from error
        except (OSError, sqlite3.Error) as error:
            raise ArtefactError(
                f"passages cannot be copied to {self._directory}: {error}: make room there, or set "
                "TMPDIR to another directory"
            ) from error

    def count(self) -> int:
        """Counts the passages."""
        with contextlib.closing(self._open()) as staging:
            return staging.counts()[0]

    def puts(self, batch: int) -> Iterator[list[Put]]:
        """Yields all passages with their versions, in batches. Used by one thread."""
        with contextlib.closing(self._open()) as staging:
            yield from staging.puts(batch)

    def deletions(self) -> list[Write]:
        """Returns the deletions with a version, which outdate older puts."""
        with contextlib.closing(self._open()) as staging:
            return staging.deletions()

    def _open(self) -> Staging:
        return Staging(self._directory / _STAGING)

    def _fetch(self, copy: PeerCopy, node: str, progress: "_StoppableProgress") -> None:
        source = PullSource(
            storage=copy,
            source=f"the shard at node {node}",
            advice_if_missing="verify the shard there",
            advice_if_damaged="verify the shard there",
        )
        shard = self._directory / "shard"
        shard.mkdir()
        pull_files(source, _needed(copy.files), shard, progress)
        current = read_current_shard(shard)
        with contextlib.closing(self._open()) as staging:
            staging.copy_shard(current.base / current.manifest.store, progress.check)

            def apply(write: LoggedWrite) -> None:
                progress.check()
                staging.apply(write)

            replay_unmerged(shard, current, apply)
            staging.record(staged=True)


class _StoppableProgress:
    """Shows progress, and ends the work of its thread once it is stopped."""

    def __init__(self, progress: CopyProgress) -> None:
        self._progress, self.is_stopped = progress, False

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        self.check()
        self._progress.start(stage, total, done)

    def advance(self, steps: int) -> None:
        self.check()
        self._progress.advance(steps)

    def check(self, _done: object = None) -> None:
        """Raises StoppedError if the work was stopped."""
        if self.is_stopped:
            raise StoppedError("the copying was cancelled")


def _needed(files: Mapping[str, PulledFile]) -> dict[str, PulledFile]:
    """Returns the files with passages and writes: no vectors with their graph, words or states."""
    names = {STORE, SHARD_FILE}
    return {
        path: file
        for path, file in files.items()
        if PurePosixPath(path).name in names or PurePosixPath(path).parent.as_posix() == LIVE
    }
