"""Syncs a folder again whenever its files change."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from pathlib import Path, PurePath
from typing import Any

from winnow.cli.sync.job import DocumentIndex, FolderSync, SyncReport
from winnow.documents.folder import IGNORE_FILE
from winnow.documents.formats.registry import is_supported
from winnow.errors import WinnowError

Watch = Callable[[Path, bool], AsyncGenerator[set[Any], None]]
"""Watches a folder for changes. The second argument is whether to poll its files."""
_RETRY_SECONDS = 10.0
"""Seconds until a failed sync or watch is repeated."""
_PAUSE_SECONDS = 2.0
"""Seconds after a sync before the next one.

A file that changes all the time, such as a log of the sync itself, then does not keep it busy.
"""
_POLL_MILLISECONDS = 2_000
"""Milliseconds between two looks at the files of a folder that the system cannot watch."""


async def keep_synced(
    sync: FolderSync,
    index: DocumentIndex,
    changes: AsyncIterator[object],
    *,
    on_report: Callable[[SyncReport], None],
    on_error: Callable[[WinnowError], None],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Syncs now and after each of the `changes`, until they end.

    Repeats a sync that failed until it succeeds, and pauses after each sync. Calls `on_report`
    after each sync, and `on_error` after each failure.
    """
    # asked for before each sync, so that changes during the sync count
    change = asyncio.ensure_future(anext(changes, None))
    await asyncio.sleep(0)  # lets the watch begin before the folder is read
    try:
        while True:
            try:
                on_report(await sync.run(index))
                await sleep(_PAUSE_SECONDS)
            except WinnowError as error:
                on_error(error)
                await sleep(_RETRY_SECONDS)
                continue
            if await change is None:
                return
            change = asyncio.ensure_future(anext(changes, None))
    finally:
        change.cancel()


def changes_of(
    folder: Path,
    watch: Watch | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[object]:
    """Yields whenever files of a folder have changed, except hidden ones.

    Waits for a folder that is missing, and watches a new folder in its place. If the system's
    limit of watches is reached, the files are polled.

    Args:
        folder: the folder to watch.
        watch: yields sets of changes, and an empty set from time to time; None for watchfiles.
        sleep: waits for a number of seconds.

    """
    return _changes(folder.resolve(), watch or _watch, sleep)


async def _changes(
    root: Path, watch: Watch, sleep: Callable[[float], Awaitable[None]]
) -> AsyncIterator[object]:
    polling = missed = False
    while True:
        watched = _inode(root)
        if watched is not None:
            try:
                async with contextlib.aclosing(watch(root, polling)) as changes:
                    async for change in changes:
                        if change or missed:
                            yield change
                            missed = False
                        if _inode(root) != watched:
                            break
            except FileNotFoundError:
                pass
            except (OSError, RuntimeError):  # what watchfiles raises at a limit of the system
                polling = True
        missed = True
        await sleep(_RETRY_SECONDS)


def _inode(folder: Path) -> int | None:
    """Returns what identifies a folder; None if it is missing."""
    try:
        return folder.stat().st_ino
    except OSError:
        return None


def _watch(root: Path, polling: bool) -> AsyncGenerator[set[Any], None]:
    # of the extra `documents`, which most processes lack
    from watchfiles import Change, awatch  # noqa: PLC0415

    return awatch(
        root,
        watch_filter=lambda change, path: is_watched(
            Path(path).relative_to(root),
            may_be_folder=change is not Change.modified or Path(path).is_dir(),
        ),
        ignore_permission_denied=True,
        yield_on_timeout=True,
        force_polling=polling or None,
        poll_delay_ms=_POLL_MILLISECONDS,
    )


def is_watched(path: PurePath, *, may_be_folder: bool) -> bool:
    """Returns whether a change of a path in a folder may change its documents.

    `may_be_folder`: whether the path is a folder, which can have any name, or was one.
    """
    if path.as_posix() == IGNORE_FILE:
        return True
    is_hidden = any(part.startswith(".") for part in path.parts)
    return not is_hidden and (may_be_folder or is_supported(path))
