"""Reads the current state of a shard on disk: its newest base, log and precomputed data."""

from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.live.reading import log_path, read_state
from winnow.content_node.live.schema import State
from winnow.content_node.merging.names import LIVE
from winnow.content_node.merging.newest import newest_name
from winnow.content_node.shard.manifest import ShardManifest, read_shard_manifest
from winnow.content_node.shard.view import live_generation
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import StatesManifest, read_states_manifest
from winnow.errors import ArtefactError
from winnow.reading.states_kind import READER_STATES, StatesKind


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
        return self.data(READER_STATES)

    def data(self, kind: StatesKind) -> StatesManifest | None:
        """Returns the manifest of the base's data of a kind; None without usable data."""
        if not (self.base / kind.manifest).exists():
            return None
        try:
            states = read_states_manifest(self.base, kind)
            size = (self.base / kind.data).stat().st_size
        except (ArtefactError, OSError):  # `index verify` reports the fault
            return None
        matches = (states.bytes, states.generation) == (size, self.manifest.generation)
        return states if matches else None

    def passages_with(self, kind: StatesKind) -> int:
        """Returns the number of passages with usable data of a kind."""
        found = self.data(kind)
        try:
            return StateFile.open_beside(self.base, found, kind).passages if found else 0
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
