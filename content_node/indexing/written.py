"""The present state of a shard: its newest base, its log and its precomputed states."""

from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.live.reading import LIVE, log_path, state_of
from winnow.content_node.live.schema import State
from winnow.content_node.merging.newest import newest_name
from winnow.content_node.shard.manifest import ShardManifest, read_shard_manifest
from winnow.content_node.shard.view import live_generation
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import (
    DATA,
    STATES_FILE,
    StatesManifest,
    read_states_manifest,
)
from winnow.errors import ArtefactError


@dataclass(frozen=True, slots=True)
class WrittenShard:
    """A shard with its newest base and the position of its log, not checked."""

    base: Path
    """The directory of the newest generation."""
    manifest: ShardManifest
    """The manifest of that generation."""
    state: State | None
    """None if there is no log."""

    @property
    def states(self) -> StatesManifest | None:
        """The precomputed states of the base; None if there are none that can be used."""
        if not (self.base / STATES_FILE).exists():
            return None
        try:
            found = read_states_manifest(self.base)
            size = (self.base / DATA).stat().st_size
        except (ArtefactError, OSError):  # `index verify` names the fault
            return None
        expected = found.bytes, found.generation
        return found if (size, self.manifest.generation) == expected else None

    @property
    def with_states(self) -> int:
        """The number of passages with states that can be used."""
        states = self.states
        try:
            return StateFile.open_beside(self.base, states).passages if states else 0
        except ArtefactError:
            return 0

    @property
    def sequence(self) -> int:
        """The number of the last write; 0 if there was none."""
        return self.state.last if self.state else self.manifest.sequence

    @property
    def unmerged(self) -> int:
        """The number of writes that only the log has."""
        return self.sequence - self.manifest.sequence

    @property
    def log_id(self) -> str:
        """The name of the log; empty if there is none."""
        return self.state.log_id if self.state else ""

    @property
    def generation(self) -> str:
        """The generation that a node reports which serves this state."""
        own = self.manifest.generation
        return live_generation(own, self.log_id) if self.log_id else own


def written(shard: Path) -> WrittenShard:
    """The present state of a shard; a node may be writing to it.

    Raises:
        ArtefactError: a manifest or the state of the log is damaged.

    """
    name = newest_name(shard)
    base = shard / LIVE / name if name else shard
    try:
        manifest = read_shard_manifest(base)
    except ArtefactError:
        if newest_name(shard) == name:
            raise
        return written(shard)  # a merge has removed it: there is a newer one
    return WrittenShard(base, manifest, state_of(log_path(shard)))
