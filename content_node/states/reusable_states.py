"""Precomputed states that another generation of a shard already has."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.states.file import StateFile, open_states
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile


class GenerationStates:
    """The states beside one generation of a shard, found by passage and write."""

    def __init__(self, store: PassageStore, states: StateFile) -> None:
        self._store, self._states = store, states

    def packed(self, identifier: str, sequence: int) -> bytes:
        """Returns the states of a passage as a write put it, in the format on disk.

        Empty if there are none. Damaged states count as missing, and are computed again.
        """
        row = self._row(identifier, sequence)
        try:
            states = None if row is None else self._states.read(row)
        except ArtefactError:
            return b""
        return states.packed() if states is not None else b""

    def size(self, identifier: str, sequence: int) -> int:
        """Returns the size of these states in bytes, damaged or not; 0 if there are none."""
        row = self._row(identifier, sequence)
        return 0 if row is None else self._states.size(row)

    def _row(self, identifier: str, sequence: int) -> int | None:
        found = self._store.locate(identifier)
        if found is None or found.sequence != sequence or found.row >= self._states.rows:
            return None
        return found.row


def reusable_states(directories: Iterable[Path], fingerprint: str) -> Sequence[GenerationStates]:
    """Opens the states of a reader beside generations; generations without such states are left
    out.

    Raises:
        ArtefactError: a generation is damaged.

    """
    found = []
    for directory in directories:
        manifest = read_shard_manifest(directory)
        states = open_states(directory, manifest.generation, fingerprint)
        if states is not None:
            store = PassageStore(OpenFile(directory / manifest.store))
            found.append(GenerationStates(store, states))
    return found
