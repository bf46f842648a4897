"""Syncs a folder again whenever its files change."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from winnow.cli.sync.job import DocumentIndex, FolderSync, SyncReport
from winnow.errors import WinnowError

_RETRY_SECONDS = 10.0
"""Seconds until a failed sync is repeated."""


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

    Repeats a sync that failed until it succeeds. Calls `on_report` after each sync, and `on_error`
    after each failure.
    """
    # asked for before each sync, so that changes during the sync count
    change = asyncio.ensure_future(anext(changes, None))
    try:
        while True:
            try:
                on_report(await sync.run(index))
            except WinnowError as error:
                on_error(error)
                await sleep(_RETRY_SECONDS)
                continue
            if await change is None:
                return
            change = asyncio.ensure_future(anext(changes, None))
    finally:
        change.cancel()


def changes_of(folder: Path) -> AsyncIterator[object]:
    """Yields whenever files of a folder have changed, except hidden ones."""
    # of the extra `documents`, which most processes lack
    from watchfiles import Change, awatch  # noqa: PLC0415

    root = folder.resolve()

    def is_visible(_change: Change, path: str) -> bool:
        return not any(part.startswith(".") for part in Path(path).relative_to(root).parts)

    return awatch(root, watch_filter=is_visible, ignore_permission_denied=True)
