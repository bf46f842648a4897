"""Finds data that other generations of a shard already have."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.states.file import StateFile, open_states
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.reading.states_kind import READER_STATES, StatesKind


class GenerationStates:
    """The states beside one generation of a shard, by passage id and sequence number."""

    def __init__(self, store: PassageStore, states: StateFile) -> None:
        self._store, self._states = store, states

    def packed(self, identifier: str, sequence: int) -> bytes:
        """Returns the states of a passage version in the format on disk; empty without states.

        Damaged states count as missing, and are computed again.
        """
        try:
            row = self._find_row(identifier, sequence)
            return b"" if row is None else self._states.packed(row)
        except ArtefactError:
            return b""

    def size(self, identifier: str, sequence: int) -> int:
        """Returns the size of the result of `packed` in bytes; 0 without states.

        Damaged states have a size, too.
        """
        try:
            row = self._find_row(identifier, sequence)
            return 0 if row is None else self._states.size(row)
        except ArtefactError:
            return 0

    def _find_row(self, identifier: str, sequence: int) -> int | None:
        location = self._store.locate(identifier)
        if location is None or (location.sequence != sequence or location.row >= self._states.rows):
            return None
        return location.row


def open_reusable_states(
    directories: Iterable[Path], fingerprint: str, kind: StatesKind = READER_STATES
) -> Sequence[GenerationStates]:
    """Opens the data of a model beside generations; skips generations that have none.

    It also skips damaged generations: nobody reads the passages of the built shard any more once it
    was merged. The data of each passage is verified when it is copied.
    """
    found = []
    for directory in directories:
        with contextlib.suppress(ArtefactError):
            manifest = read_shard_manifest(directory)
            states = open_states(
                directory, manifest.generation, fingerprint, kind, verify_all=False
            )
            if states is not None:
                store = PassageStore(OpenFile(directory / manifest.store))
                found.append(GenerationStates(store, states))
    return found
