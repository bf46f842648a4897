"""States that another generation of a shard has already."""

from pathlib import Path
from typing import Protocol

from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.states.file import StateFile, open_states
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile


class ReusableStates(Protocol):
    """What need not be computed."""

    def packed(self, identifier: str, sequence: int) -> bytes:
        """The states of a passage as a write put it, as they lie on disk; empty if not known."""

    def size(self, identifier: str, sequence: int) -> int:
        """The bytes of these states, which are not read; 0 if they are not known."""


class Nothing:
    """Nothing is known."""

    def packed(self, identifier: str, sequence: int) -> bytes:
        """Nothing."""
        return b""

    def size(self, identifier: str, sequence: int) -> int:
        """Nothing."""
        return 0


class OfGeneration:
    """The states beside another generation of the same shard."""

    def __init__(self, store: PassageStore, states: StateFile) -> None:
        self._store, self._states = store, states

    def packed(self, identifier: str, sequence: int) -> bytes:
        """Returns the states of the same write; see `ReusableStates`.

        Damaged states count as missing, and are computed again.
        """
        row = self._row(identifier, sequence)
        try:
            states = None if row is None else self._states.read(row)
        except ArtefactError:
            return b""
        return states.packed() if states is not None else b""

    def size(self, identifier: str, sequence: int) -> int:
        """The bytes of the states of the same write, damaged or not; see `ReusableStates`."""
        row = self._row(identifier, sequence)
        return 0 if row is None else self._states.size(row)

    def _row(self, identifier: str, sequence: int) -> int | None:
        found = self._store.entry(identifier)
        if found is None or found.sequence != sequence or found.row >= self._states.rows:
            return None
        return found.row


class Either:
    """What one of two knows."""

    def __init__(self, first: ReusableStates, second: ReusableStates) -> None:
        self._first, self._second = first, second

    def packed(self, identifier: str, sequence: int) -> bytes:
        """What the first one knows, or else the second; see `ReusableStates`."""
        return self._first.packed(identifier, sequence) or self._second.packed(identifier, sequence)

    def size(self, identifier: str, sequence: int) -> int:
        """As `packed`; see `ReusableStates`."""
        return self._first.size(identifier, sequence) or self._second.size(identifier, sequence)


def known_states(directory: Path, fingerprint: str) -> OfGeneration | None:
    """The states beside a generation; None if there are none of this reader.

    Raises:
        ArtefactError: the generation is damaged.

    """
    manifest = read_shard_manifest(directory)
    states = open_states(directory, manifest.generation, fingerprint)
    if states is None:
        return None
    return OfGeneration(PassageStore(OpenFile(directory / manifest.store)), states)
