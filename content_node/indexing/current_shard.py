"""Reads the current state of a shard on disk: its newest base, log and precomputed states."""

from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.live.reading import log_path, read_state
from winnow.content_node.live.schema import State
from winnow.content_node.merging.names import LIVE
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
class CurrentShard:
    """The newest base of a shard and the position of its log. Checksums are not verified."""

    base: Path
    """The directory of the newest generation."""
    manifest: ShardManifest
    """The manifest of the newest generation."""
    state: State | None
    """The state of the log; None if there is no log."""

    @property
    def states(self) -> StatesManifest | None:
        """The manifest of the precomputed states of the base; None without usable states."""
        if not (self.base / STATES_FILE).exists():
            return None
        try:
            states = read_states_manifest(self.base)
            size = (self.base / DATA).stat().st_size
        except (ArtefactError, OSError):  # `index verify` reports the fault
            return None
        matches = (states.bytes, states.generation) == (size, self.manifest.generation)
        return states if matches else None

    @property
    def passages_with_states(self) -> int:
        """The number of passages with usable states."""
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
        """The number of writes that are in the log, but not in the base."""
        return self.sequence - self.manifest.sequence

    @property
    def log_id(self) -> str:
        """The id of the log; empty if there is none."""
        return self.state.log_id if self.state else ""

    @property
    def generation(self) -> str:
        """The generation that a node reports when it serves this state."""
        own = self.manifest.generation
        return live_generation(own, self.log_id) if self.log_id else own


def read_current_shard(shard: Path) -> CurrentShard:
    """Reads the current state of a shard while a node may be writing to it.

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
        return read_current_shard(shard)  # a merge has replaced this generation by a newer one
    return CurrentShard(base, manifest, read_state(log_path(shard)))
