"""The files of a shard on this disk and in the archive. Blocks: use a thread.

Archiving: the files are copied to the archive, read back and verified; then the stub replaces the
manifest; then the other files are removed. Restoring: the files are copied into a subdirectory and
verified, moved into their places, and last the manifest replaces the stub. So a process that is
killed anywhere leaves either the whole shard with its manifest, or a stub of a whole archive.
"""

import errno
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from winnow.content_node.archiving.folder import (
    FOLDER_FILE,
    ArchiveFolder,
    folder_of,
    forget_folder,
    recorded_folder,
)
from winnow.content_node.archiving.removing import remove_folder, remove_former_copy
from winnow.content_node.archiving.stub import ArchiveStub, folder_url, read_stub, write_stub
from winnow.content_node.live.custody import CUSTODY_FILE
from winnow.content_node.live.locks import LOCK_FILE, DirectoryLock
from winnow.content_node.live.reading import log_path, read_state
from winnow.content_node.merging.names import LIVE
from winnow.content_node.merging.newest import newest_name
from winnow.content_node.shard.manifest import SHARD_FILE, read_shard_manifest
from winnow.content_node.snapshots.last_snapshot import LAST_SNAPSHOT_FILE
from winnow.content_node.snapshots.manifest import Snapshot
from winnow.content_node.snapshots.restoring import pull_source, pulled_files
from winnow.content_node.snapshots.stored_snapshots import (
    FILES,
    SNAPSHOTS,
    FoundSnapshot,
    find_snapshot,
    snapshot_names,
)
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.domain.shard import shard_name
from winnow.errors import (
    ArchiveUnreachableError,
    ArtefactError,
    NotFoundError,
    UnavailableError,
    WinnowError,
)
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory
from winnow.files.opened import verify
from winnow.quoting import shown
from winnow.reading.states_kind import KINDS
from winnow.storage import open_storage
from winnow.storage.local import LocalStorage
from winnow.storage.pull import CopyProgress, pull_files

_PULLED = "restored.partial"
"""Subdirectory of an archived shard into which its files are restored."""
_READ_BACK = "archived.partial"
"""File into which the files of the archive are read back, one after the other."""
_KEPT = (LOCK_FILE, CUSTODY_FILE, FOLDER_FILE, LAST_SNAPSHOT_FILE)
"""Files beside the log that an archived shard keeps: they belong to this copy of the shard."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A verified copy of a shard in the archive."""

    folder: str
    """Folder of the shard in the archive."""
    snapshot: Snapshot


class ShardChangedError(ArtefactError):
    """The shard has a write or an entry of its journal that its copy lacks."""


def upload_shard(
    directory: Path,
    archive: str,
    clock: Callable[[], datetime],
    *,
    merged: int = 0,
    check: Callable[[], None] = lambda: None,
) -> Uploaded:
    """Copies a shard, which may be served, into the archive; verifies the copy.

    Files that its folder has already are not copied again, but verified. If the directory of the
    shard is deleted meanwhile, the folder is removed.

    Args:
        directory: the shard.
        archive: directory or URL of the archive.
        clock: returns the time of the snapshot.
        merged: number of the last write in the merged files of the shard.
        check: raises UnavailableError once the copy is not wanted any more; often called.

    Raises:
        ArtefactError: a file of the shard or of the archive is damaged.
        UnavailableError: the archive cannot be reached or written, or merges disturb the copy.
        OSError: a file cannot be written to the disk of the shard.

    """
    manifest = read_shard_manifest(directory)
    name = shard_name(manifest.shard, manifest.shards)
    # not after the copy: its record would hide that the archive has an earlier one
    remove_obsolete_copy(directory, archive, merged, check)
    remove_former_copy(directory, archive, check)
    folder = folder_of(directory, name, manifest.index_id, archive, merged)
    root = folder_url(archive, manifest.index_id, folder)
    try:
        snapshot = take_snapshot(directory, root, _CheckedProgress(check), clock, is_backup=False)
        reach("archive.uploaded")
        found = find_snapshot(f"{root}/{name}", snapshot.name)
        if found.snapshot != snapshot:
            raise ArtefactError(
                f"snapshot {snapshot.name} at {shown(root)} is not the one just taken"
            )
        _check_states(directory, snapshot, name)
        _verify_stored(found, directory, check)
        reach("archive.verified")
    finally:
        if not directory.exists():  # only the directory names the folder
            remove_folder(archive, ArchiveFolder(folder, manifest.index_id, archive, merged))
    return Uploaded(folder, snapshot)


def commit_archive(directory: Path, stub: ArchiveStub) -> DirectoryLock:
    """Replaces the files of a closed shard by a stub; returns the lock of the directory.

    Raises ArtefactError if another process has opened the shard, and ShardChangedError if the shard
    has other writes than the archive; then nothing is changed. Raises OSError if the stub cannot be
    written; the directory then has the shard or its stub, as `read_stub` tells.
    """
    lock = lock_shard(directory)
    try:
        state = read_state(log_path(directory))
        last = state.last if state is not None else read_shard_manifest(directory).sequence
        if last != stub.sequence:
            raise ShardChangedError(
                f"{directory} has write {last}, but its archive ends at write {stub.sequence}"
            )
        position = state.journal_position if state is not None else ""
        if position != (stub.journal_position or ""):
            raise ShardChangedError(
                f"{directory} has an entry of its journal that its archive lacks"
            )
        write_stub(directory, stub)
        reach("archive.stubbed")
        remove_files(directory)
    except BaseException:
        lock.release()
        raise
    reach("archive.removed")
    return lock


def restore_shard(directory: Path, archive: str, progress: CopyProgress) -> ArchiveStub | None:
    """Restores a shard if it is archived; returns its stub, or None if it is not archived.

    The log keeps its id and its sequence numbers. `archive` is its present URL; empty for
    the one in the stub. An interrupted restore is continued by the next one.

    Raises:
        ArtefactError: the archive lacks a file or has a damaged one, or another process has opened
            the shard.
        NotFoundError: the archive has no copy of the shard.
        ArchiveUnreachableError: the archive cannot be reached.
        UnavailableError: the files cannot be written.

    """
    with _local_errors(directory):
        held = lock_archived(directory)
        if held is None:
            shutil.rmtree(directory / _PULLED, ignore_errors=True)  # left by a kill
            return None
        stub, lock = held
        try:
            remove_files(directory, keep=(_PULLED,))
            with _archive_errors():
                found = _find_archived(directory, stub, archive)
                _pull(found, directory / _PULLED, progress)
            reach("restore.pulled")
            _move_into_place(directory)
            reach("restore.moved")
            (directory / _PULLED / SHARD_FILE).replace(directory / SHARD_FILE)
            sync_directory(directory)
            reach("restore.renamed")
            shutil.rmtree(directory / _PULLED, ignore_errors=True)
        finally:
            lock.release()
    return stub


def remove_earlier(
    directory: Path, archive: str, stub: ArchiveStub, check: Callable[[], None] = lambda: None
) -> None:
    """Removes what earlier archivings have left in the folder of an archived shard.

    So passages that were deleted meanwhile leave the archive, too. A copy of an archived directory
    has its stub, but not its folder: it removes nothing, since the original may have a later
    version there. `check` raises UnavailableError once another process may archive the shard.

    Raises NotFoundError if the archive has no copy of the shard, UnavailableError if it cannot be
    reached, and OSError if a local one cannot be changed.
    """
    folder = recorded_folder(directory)
    if folder is None or folder.name != stub.folder:
        return
    found = _find_archived(directory, stub, archive)
    storage, used = found.storage, {entry.sha256 for entry in found.files.values()}
    names = [name for name in snapshot_names(storage) if name != stub.snapshot]
    others = storage.sizes(FILES).keys() - used
    for path in (
        *(f"{SNAPSHOTS}/{name}.json" for name in names),
        *(f"{FILES}/{n}" for n in others),
    ):
        check()
        storage.remove(path)
    if (local := storage.directory(FILES)) is not None:
        for each in local.glob(".*"):  # copies that were interrupted
            check()
            each.unlink(missing_ok=True)


def remove_obsolete_copy(
    directory: Path, archive: str, merged: int, check: Callable[[], None] = lambda: None
) -> None:
    """Removes the copy that the archive has of a shard on this disk, if it was merged since.

    The copy has passages that were deleted, and the next archiving would copy most files anyway.
    `merged` is the number of the last write in the merged files of the shard. Raises as
    `remove_earlier`.
    """
    folder = recorded_folder(directory)
    if folder is not None and folder.merged != merged:
        remove_former_copy(directory, archive, check)
        is_other = folder.archive != shown(archive)  # which has no copy yet, unless it was moved
        remove_folder(archive, folder, check, may_be_missing=is_other)
        forget_folder(directory)


def lock_shard(directory: Path) -> DirectoryLock:
    """Locks the directory of a shard, as a node that takes writes does.

    Raises ArtefactError if another process has locked it, and OSError if that fails.
    """
    live = directory / LIVE
    if not live.is_dir():
        live.mkdir()
        sync_directory(directory)
    return DirectoryLock(live / LOCK_FILE)


def lock_archived(directory: Path) -> tuple[ArchiveStub, DirectoryLock] | None:
    """Locks the directory of an archived shard; returns None if the shard is not archived.

    Raises ArtefactError if the stub is damaged, or another process has locked the directory.
    """
    if read_stub(directory) is None:
        return None
    lock = lock_shard(directory)
    try:
        stub = read_stub(directory)
    except BaseException:
        lock.release()
        raise
    if stub is None:  # it was restored before it was locked, so its files count
        lock.release()
        return None
    return stub, lock


def remove_read_back(directory: Path) -> None:
    """Removes what a killed process has left of a file that it read back from the archive."""
    with suppress(OSError):
        (directory / _READ_BACK).unlink(missing_ok=True)


def remove_files(directory: Path, keep: Collection[str] = ()) -> None:
    """Removes all files of an archived shard that are not part of the stub, except `keep`.

    Raises OSError if a file cannot be removed.
    """
    for each in directory.iterdir():
        if each.name == LIVE:
            for inner in each.iterdir():
                if inner.name not in _KEPT:
                    _remove(inner)
        elif each.name not in (SHARD_FILE, *keep):
            _remove(each)
    sync_directory(directory / LIVE)
    sync_directory(directory)


def _remove(path: Path) -> None:
    reach("archive.removing")
    if path.is_dir() and not path.is_symlink():
        with suppress(FileNotFoundError):  # the end of a merge removes files, too
            shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _check_states(directory: Path, snapshot: Snapshot, name: str) -> None:
    """Raises ArtefactError if the shard has precomputed data that the snapshot lacks.

    A snapshot leaves out data that is just being written.
    """
    newest = newest_name(directory)
    base = f"{LIVE}/{newest}/" if newest else ""
    for kind in KINDS:
        path = f"{base}{kind.manifest}"
        if (directory / path).exists() and f"{name}/{path}" not in snapshot.files:
            raise ArtefactError(f"the {kind.noun} of {directory} could not be copied")


def _verify_stored(found: FoundSnapshot, directory: Path, check: Callable[[], None]) -> None:
    """Reads back every file of a snapshot; raises ArtefactError if one is damaged or missing.

    A damaged file is removed, so that the next archiving copies it again.
    """

    def on_copied(_: int) -> None:
        check()

    again = "the next attempt copies it again"
    source = replace(pull_source(found), advice_if_missing=again, advice_if_damaged=again)
    target = directory / _READ_BACK
    try:
        for name, file in pulled_files(found).items():
            try:
                found.storage.download(file.path, target, on_copied)
            except FileNotFoundError as error:
                raise source.missing(name, file) from error
            try:
                verify(target, file.sha256, file.bytes)
            except ArtefactError as error:
                found.storage.remove(file.path)
                raise source.damaged(name, file) from error
    finally:
        target.unlink(missing_ok=True)


def _find_archived(directory: Path, stub: ArchiveStub, archive: str) -> FoundSnapshot:
    """Finds the copy of an archived shard.

    Raises NotFoundError if the archive lacks it. Raises ArchiveUnreachableError if the directory of
    the archive is missing: its disk may not be mounted.
    """
    try:
        return find_snapshot(stub.snapshot_url(archive), stub.snapshot)
    except NotFoundError as error:
        is_missing = _is_missing(archive or stub.url)
        kind: type[WinnowError] = ArchiveUnreachableError if is_missing else NotFoundError
        raise kind(
            f"{directory} was archived at {stub.url}, but {shown(archive or stub.url)} has no copy "
            "of it: mount that archive again, correct --archive-url, or take the archive from a "
            f"backup; {error}"
        ) from error


def _is_missing(archive: str) -> bool:
    """Whether the archive is a local directory that does not exist."""
    storage = open_storage(archive, "archived shards")
    return isinstance(storage, LocalStorage) and not Path(storage.name).exists()


def _pull(found: FoundSnapshot, target: Path, progress: CopyProgress) -> None:
    """Copies the files of the archive, verified and durable, except those that the stub keeps."""
    kept = {f"{LIVE}/{name}" for name in _KEPT}
    files = {name: file for name, file in pulled_files(found).items() if name not in kept}
    target.mkdir(exist_ok=True)
    advice = "this is the only copy of the shard, so take the file from a backup of the archive"
    source = replace(pull_source(found), advice_if_missing=advice, advice_if_damaged=advice)
    pull_files(source, files, target, progress)
    for directory, _, _ in os.walk(target):
        sync_directory(Path(directory))


def _move_into_place(directory: Path) -> None:
    """Moves the restored files, except the manifest, from their subdirectory to their places."""
    for each in _entries_to_move(directory / _PULLED):
        reach("restore.moving")
        each.rename(directory / each.relative_to(directory / _PULLED))
    sync_directory(directory / LIVE)
    sync_directory(directory)


def _entries_to_move(pulled: Path) -> Iterator[Path]:
    """Yields what is moved. The directory `live` exists already, so its entries are moved."""
    for each in list(pulled.iterdir()):
        if each.name == LIVE:
            yield from list(each.iterdir())
        elif each.name != SHARD_FILE:
            yield each


class _CheckedProgress:
    """A `CopyProgress` that ends a copy which is not wanted any more."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        self._check()

    def advance(self, steps: int) -> None:
        self._check()


@contextmanager
def _archive_errors() -> Iterator[None]:
    """Converts the error of a store to an ArchiveUnreachableError."""
    try:
        yield
    except ArchiveUnreachableError:
        raise
    except UnavailableError as error:
        raise ArchiveUnreachableError(str(error)) from error


@contextmanager
def _local_errors(directory: Path) -> Iterator[None]:
    """Converts an OSError to an UnavailableError. A full disk gets its space back."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            with suppress(OSError):
                shutil.rmtree(directory / _PULLED)
        raise UnavailableError(
            f"{directory} cannot be restored: {error.strerror or error}: make room on the disk, or "
            "make it writable; the next call tries again"
        ) from error
