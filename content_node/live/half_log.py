"""Creates the log of a half of a split shard, which continues the numbering of the parent's log."""

from pathlib import Path

from winnow.content_node.live.acknowledged import (
    ACKNOWLEDGED_FILE,
    AcknowledgedFile,
    AcknowledgedWrite,
)
from winnow.content_node.live.custody import OWNED, Custody, Role, read_custody, write_custody
from winnow.content_node.live.database import create_log
from winnow.content_node.live.locks import LOCK_FILE, DirectoryLock
from winnow.content_node.live.log_entry import first_link
from winnow.content_node.live.reading import log_path, read_state
from winnow.content_node.live.schema import TrimmedWrites
from winnow.content_node.live.word_counts import WordTally
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.domain.partition import parent_of
from winnow.domain.shard import shard_name
from winnow.errors import ArtefactError
from winnow.files.durable import sync_directory


def log_id_of_half(parent_log_id: str, half: int) -> str:
    """Returns the id of a half's log; empty if the parent has no log."""
    return f"{parent_log_id}/{half}" if parent_log_id else ""


def log_id_of_part(log_id: str, shard: int, built: int) -> str:
    """The name of a shard's log that follows the journal `log_id` from its beginning."""
    parent = parent_of(shard, built)
    return (
        log_id if parent is None else log_id_of_half(log_id_of_part(log_id, parent, built), shard)
    )


def journal_of_log(log_id: str) -> str:
    """The id of the journal that a log follows; the halves of a shard follow that of the shard."""
    return log_id.partition("/")[0]


def begin_half_log(
    directory: Path, parent: int | None, log_id: str, sequence: int, words: WordTally
) -> None:
    """Prepares the directory of a half to follow the log of its parent.

    Args:
        directory: directory of the half, which holds its base already.
        parent: number of the parent shard; None if the parent takes no writes.
        log_id: id of the half's log; empty if the base holds no writes.
        sequence: number of the last write that the base holds.
        words: changes of word counts by the writes that the base holds. The changes of the two
            halves add up to those of the parent.

    Raises OSError or `sqlite3.Error` if a file cannot be written.

    """
    if parent is not None:
        write_custody(directory, Custody(Role.FOLLOWER, parent=parent))
    if not log_id:
        return  # the half creates its log with the first write of the parent
    path = log_path(directory)
    path.parent.mkdir(exist_ok=True)
    DirectoryLock(path.with_name(LOCK_FILE)).release()
    link = first_link(log_id, sequence)
    create_log(path, log_id, TrimmedWrites(sequence, link, words))
    acknowledged = AcknowledgedWrite(sequence, link)
    AcknowledgedFile(path.with_name(ACKNOWLEDGED_FILE), acknowledged).close()
    sync_directory(path.parent)


def resume_following(half: Path) -> None:
    """Makes a half follow its parent if a node without `--feed` was stopped while it split.

    Such a node records no custody for the half. If it is restarted with `--feed`, the parent and
    the half would both take writes. Nothing changes if the parent is gone, takes no writes, or the
    half has a recorded custody.

    Raises ArtefactError if a file is damaged, or cannot be written.
    """
    manifest = read_shard_manifest(half)
    number = parent_of(manifest.shard, manifest.shards)
    if number is None or read_custody(half) != OWNED:
        return
    state = read_state(log_path(half))
    if state is not None and state.journal_position:
        return  # it was copied from a node that had split the shard
    parent = half.with_name(shard_name(number, manifest.shards))
    if not parent.is_dir() or not read_custody(parent).takes_writes:
        return
    try:
        write_custody(half, Custody(Role.FOLLOWER, parent=number))
    except OSError as error:
        raise ArtefactError(f"cannot write in {half}: {error.strerror}") from error
