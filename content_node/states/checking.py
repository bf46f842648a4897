"""Checks the precomputed data beside a shard. Another process may be replacing it."""

from pathlib import Path

from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.states.advice import states_command
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import read_states_manifest
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.watched import stamp
from winnow.reading.states_kind import READER_STATES, StatesKind


def states_fault(directory: Path, kind: StatesKind = READER_STATES) -> str:
    """Returns what is wrong with the data beside a generation; empty for valid or no data.

    Raises:
        ArtefactError: the generation itself is damaged or missing.

    """
    shard = read_shard_manifest(directory)
    while (checked := stamp(directory / kind.manifest)) is not None:
        try:
            _check_states(directory, shard.generation, shard.rows, kind)
        except Exception as error:  # noqa: BLE001 (invalid content may have a valid checksum)
            # a process that replaces the data removes this file first and writes it last
            if stamp(directory / kind.manifest) == checked:
                return (
                    f"some {kind.noun} cannot be used: {error}: "
                    f"{states_command(directory, kind=kind)} replaces them"
                )
        else:
            break
    return ""


def _check_states(directory: Path, generation: str, rows: int, kind: StatesKind) -> None:
    manifest = read_states_manifest(directory, kind)
    if manifest.generation != generation:
        raise ArtefactError(f"the {kind.noun} are of another generation")
    states = StateFile.open_beside(directory, manifest, kind)
    if states.rows != rows:
        raise ArtefactError(f"the {kind.noun} have {states.rows} rows, the shard has {rows}")
    OpenFile(directory / kind.data).verify(manifest.sha256, manifest.bytes, advice="")
