"""A node that starts from a snapshot: its shard is restored once, and then stays what it is."""

from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.shard.manifest import SHARD_FILE, read_shard_manifest
from winnow.content_node.snapshots.finding import FoundSnapshot, find, split
from winnow.content_node.snapshots.restoring import restore
from winnow.domain.layout import shard_name
from winnow.errors import ArtefactError, NotFoundError, UnavailableError
from winnow.files.checksum import sha256
from winnow.quoting import shown
from winnow.storage.progress import CopyProgress

_EXAMPLE = shard_name(0, 3)


@dataclass(frozen=True, slots=True)
class PulledShard:
    """What became of a pull."""

    restored: FoundSnapshot | None
    """None where the shard was there before, and is what is served: it may have taken writes."""
    unreachable: str = ""
    """Why it is not known whether that is the shard that the snapshot is of."""


def pull(url: str, target: Path, progress: CopyProgress, name: str = "") -> PulledShard:
    """Restores the shard that `url` names into `target`, unless it lies there already.

    Writes that the shard has taken since are never lost: what is there is not replaced, also by a
    newer snapshot. `name` is that of the snapshot; empty for the newest.

    Raises:
        NotFoundError, ArtefactError, UnavailableError: as `restore`; NotFoundError also if `url`
            names no shard, ArtefactError if another one, or another build of it, is in `target`.
            Where a shard is in `target`, it needs neither the place nor a good snapshot there.

    """
    place, shard = split(url)
    if not shard:
        raise NotFoundError(
            f"{shown(url)} names no shard: put one behind it, such as "
            f"{shown(place).rstrip('/')}/{_EXAMPLE}"
        )
    if not target.exists():
        return PulledShard(restore(url, target, progress, name))
    read_shard_manifest(target)  # or it is none
    try:
        found = find(url, name)
    except (UnavailableError, NotFoundError, ArtefactError) as error:
        return PulledShard(None, str(error))
    expected = found.files[SHARD_FILE].sha256
    if sha256(target / SHARD_FILE) != expected:
        raise ArtefactError(
            f"{target} holds another shard, or another build of it, than snapshot "
            f"{found.snapshot.name} at {shown(url)}: move it away, or pull into another directory"
        )
    return PulledShard(None)
