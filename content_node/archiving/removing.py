"""Removes the archives of shards that are deleted from this node. Blocks: use a thread."""

import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from winnow.content_node.archiving.folder import ArchiveFolder, recorded_folder
from winnow.content_node.archiving.stub import folder_url, read_stub
from winnow.content_node.repeated_warnings import RepeatedWarnings
from winnow.content_node.snapshots.stored_snapshots import (
    FILES,
    SNAPSHOTS,
    open_snapshots,
    snapshot_names,
)
from winnow.errors import WinnowError
from winnow.faultpoints import reach
from winnow.quoting import shown
from winnow.storage import open_storage


def try_remove_archives(
    directories: Iterable[Path], archive: str, warnings: RepeatedWarnings | None = None
) -> bool:
    """Removes the archives of shards whose directories are deleted next; logs failures.

    `archive` is the present URL of the archive; empty if the node has none. Returns False if an
    archive could not be removed, so that a later attempt may succeed. A node without an archive
    does not wait for the one that it had, if the shard was restored. Call it before a directory is
    deleted, because only the directory names the folder. Attempts that are repeated share
    `warnings`.
    """
    warnings = warnings if warnings is not None else RepeatedWarnings()
    # the first failure ends it
    return all(_try_remove(each, archive, warnings) for each in directories)


def remove_folder(
    archive: str,
    folder: ArchiveFolder,
    check: Callable[[], None] = lambda: None,
    *,
    may_be_missing: bool = False,
) -> None:
    """Removes the folder of a shard from the archive, its manifests first.

    `check` raises UnavailableError once the folder may be used again. An archive that is not
    mounted does not count as empty, unless it `may_be_missing`. Raises UnavailableError if the
    archive cannot be reached, and OSError if a local one cannot be changed.
    """
    open_storage(archive, "archived shards", must_exist=not may_be_missing).folders()
    storage = open_snapshots(folder_url(archive, folder.index_id, folder.name))
    for name in snapshot_names(storage):
        check()
        storage.remove(f"{SNAPSHOTS}/{name}.json")
    reach("unarchive.unlisted")
    for name in storage.sizes(FILES):
        reach("unarchive.removing")
        check()
        storage.remove(f"{FILES}/{name}")
    check()
    if (local := storage.directory("")) is not None:
        shutil.rmtree(local)  # with hidden files of copies that were interrupted
    reach("unarchive.removed")


def remove_former_copy(
    directory: Path,
    archive: str,
    check: Callable[[], None] = lambda: None,
    *,
    warnings: RepeatedWarnings | None = None,
) -> None:
    """Removes the copy that a shard has in another archive than `archive`.

    The node had that archive before. It may be gone, or be the same one at another URL. So a
    failure is only logged, by `warnings` if given. `check` is that of `remove_folder`. Raises
    OSError if the record of the directory cannot be read.
    """
    folder = recorded_folder(directory)
    if folder is None or folder.archive == shown(archive):
        return
    try:
        remove_folder(folder.archive, folder, check)
    except (WinnowError, OSError) as error:
        check()
        (warnings or RepeatedWarnings()).warn(
            "the archive that the node had before may keep a copy of a shard: remove its folder",
            directory,
            url=folder.archive,
            folder=f"{folder.index_id}/{folder.name}",
            reason=str(error),
        )


def _try_remove(directory: Path, archive: str, warnings: RepeatedWarnings) -> bool:
    url, name = archive, ""
    try:
        folder = recorded_folder(directory)
        if folder is None:
            _warn_of_copied_stub(directory, warnings)
            return True
        url, name = archive or folder.archive, folder.name
        remove_former_copy(directory, url, warnings=warnings)
        remove_folder(url, folder)
    except Exception as error:  # noqa: BLE001 (only the directory names the folder, so it stays)
        known = isinstance(error, WinnowError | OSError)
        warnings.warn(
            "archive of a deleted shard not removed",
            directory,
            url=shown(url),
            folder=name,
            reason=str(error) or repr(error),
            exc_info=None if known else error,
        )
        return not (archive or _is_archived(directory))
    return True


def _is_archived(directory: Path) -> bool:
    with suppress(WinnowError, OSError):
        return read_stub(directory) is not None
    return False


def _warn_of_copied_stub(directory: Path, warnings: RepeatedWarnings) -> None:
    """Tells of an archive that stays. A copied directory has the same stub as the original, so the
    folder of the stub may be in use.
    """
    with suppress(WinnowError, OSError):
        if (stub := read_stub(directory)) is not None:
            warnings.warn(
                "archive of a deleted shard may be left",
                directory,
                url=stub.url,
                folder=stub.folder,
            )
