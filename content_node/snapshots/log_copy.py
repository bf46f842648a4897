"""A copy of a shard's log, which others may be writing to: all of it up to one of its writes."""

from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.live import acknowledged
from winnow.content_node.live.acknowledged import ACKNOWLEDGED, Acknowledged, AcknowledgedFile
from winnow.content_node.live.copying import back_up
from winnow.content_node.live.lock import LOCK
from winnow.content_node.live.opening import expect_nothing
from winnow.content_node.live.reading import check, log_path
from winnow.content_node.snapshots.contents import Item, item_of
from winnow.files.opened import OpenFile


@dataclass(frozen=True, slots=True)
class LogCopy:
    """A log that nobody writes to."""

    items: tuple[Item, ...]
    log_id: str
    last: int
    """The last write."""
    trimmed: int
    """The last write that is not in it any more: a base has to hold it."""


def copy_log(shard: Path, room: Path) -> LogCopy | None:
    """Copies the log of a shard into `room`, an empty directory; None if there is no log.

    Every write that was acknowledged before is in it. Nobody who writes has to wait.

    Raises:
        ArtefactError: the log is damaged, or missing while other files of it are there.
        UnavailableError: it cannot be read from here, or there is no room for the copy.

    """
    source = log_path(shard)
    told = acknowledged.read(source.with_name(ACKNOWLEDGED))
    if not source.exists():
        expect_nothing(source, told)
        return None
    copy = room / source.name
    back_up(source, copy)
    state, trimmed = check(source, told, lambda _: lambda _: None, copy)
    AcknowledgedFile(room / ACKNOWLEDGED, Acknowledged(state.last, state.link)).close()
    (room / LOCK).touch()  # or a node that feeds what is restored would find none to hold
    items = (item_of(OpenFile(room / name)) for name in (copy.name, ACKNOWLEDGED, LOCK))
    return LogCopy(tuple(items), state.log_id, state.last, trimmed.last)
