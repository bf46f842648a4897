"""All that a snapshot holds of one shard: as it was built, its newest generation, and its log.

A node may be writing and merging meanwhile. The order makes it consistent: first the files of a
generation are opened, which stay readable also if a merge removes it; then the log is copied, which
has every write since, unless it was trimmed in between. Then all is begun again.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.live.opening import expect_base
from winnow.content_node.live.reading import LIVE
from winnow.content_node.merging.names import sequence_of
from winnow.content_node.merging.newest import newest_name
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.snapshots.contents import Item, opened_base, opened_states
from winnow.content_node.snapshots.log_copy import LogCopy, copy_log
from winnow.errors import ArtefactError, UnavailableError

_TRIES = 5
"""Each takes less time than a merge."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of a shard."""

    manifest: ShardManifest
    """Of the shard as it was built."""
    items: tuple[Item, ...]
    sequence: int
    """The last write that is in them."""
    passages: int
    """In the newest generation."""
    states: tuple[Item, ...] = ()
    """Beside the newest generation; it is whole without them."""


@contextlib.contextmanager
def open_contents(directory: Path) -> Iterator[Contents]:
    """The files of the shard in `directory`, which may be served and written to meanwhile.

    Raises:
        ArtefactError: one is missing, or damaged.
        UnavailableError: the log cannot be copied.

    """
    built, base = opened_base(directory)
    with tempfile.TemporaryDirectory(prefix="winnow-snapshot-") as room:
        for attempt in range(_TRIES):
            place = Path(room) / str(attempt)
            place.mkdir()
            if (found := _consistent(directory, built, place)) is not None:
                newest, log = found
                passages = (newest.manifest if newest else built).passages
                sequence = log.last if log else newest.sequence if newest else 0
                items = (*base, *_below_live(newest, log))
                states = _states(directory, built, newest)
                yield Contents(built, items, sequence, passages, states)
                return
    raise UnavailableError(
        f"{directory} was merged again and again while it was copied: take the snapshot later"
    )


@dataclass(frozen=True, slots=True)
class _Generation:
    """One that was merged."""

    name: str
    manifest: ShardManifest
    items: tuple[Item, ...]

    @property
    def sequence(self) -> int:
        return sequence_of(self.name) or 0


def _consistent(
    directory: Path, built: ShardManifest, room: Path
) -> tuple[_Generation | None, LogCopy | None] | None:
    """A generation, and a log that has every write since; None if they do not fit together.

    Raises ArtefactError where no node would serve them: what it refuses, nobody is to restore.
    """
    name = newest_name(directory)
    try:
        newest = _opened(directory, name) if name else None
    except ArtefactError:
        if newest_name(directory) == name:
            raise
        return None  # a merge has removed it
    log = copy_log(directory, room)
    base = newest.manifest if newest else built
    if log is None:
        expect_base(base, directory, "", 0, 0)
    elif log.trimmed > base.sequence and newest_name(directory) != name:
        return None  # a merge has forgotten what comes after it
    else:
        expect_base(base, directory, log.log_id, log.trimmed, log.last)
    return newest, log


def _opened(directory: Path, name: str) -> _Generation:
    manifest, items = opened_base(directory / LIVE / name)
    return _Generation(name, manifest, tuple(item.within(name) for item in items))


def _states(directory: Path, built: ShardManifest, newest: _Generation | None) -> tuple[Item, ...]:
    if newest is None:
        return tuple(opened_states(directory, built.generation))
    items = opened_states(directory / LIVE / newest.name, newest.manifest.generation)
    return tuple(item.within(newest.name).within(LIVE) for item in items)


def _below_live(newest: _Generation | None, log: LogCopy | None) -> Iterator[Item]:
    for items in (newest.items if newest else (), log.items if log else ()):
        yield from (item.within(LIVE) for item in items)
