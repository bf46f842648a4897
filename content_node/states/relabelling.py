"""Keeps the precomputed data of a generation whose id changes, although its rows stay the same."""

import contextlib
from pathlib import Path

from winnow.content_node.states.manifest import read_states_manifest, write_states_manifest
from winnow.errors import ArtefactError
from winnow.reading.states_kind import KINDS


def relabel_data(directory: Path, old: str, new: str) -> None:
    """Changes the generation of all data beside a generation from `old` to `new`.

    Data of another generation, and damaged data, stays as it is: no node uses it. Raises OSError if
    a manifest cannot be written.
    """
    if old == new:
        return
    for kind in KINDS:
        if not (directory / kind.manifest).exists():
            continue
        with contextlib.suppress(ArtefactError):
            states = read_states_manifest(directory, kind)
            if states.generation == old:
                relabelled = states.model_copy(update={"generation": new})
                write_states_manifest(directory, relabelled, kind)
