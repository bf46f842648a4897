"""Checks the precomputed states beside a shard. Another process may be replacing them."""

from pathlib import Path

from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.states.advice import states_command
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import DATA, STATES_FILE, read_states_manifest
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.watched import stamp


def states_fault(directory: Path) -> str:
    """Returns what is wrong with the states beside a generation; empty for valid or no states.

    Raises:
        ArtefactError: the generation itself is damaged or missing.

    """
    shard = read_shard_manifest(directory)
    while (checked := stamp(directory / STATES_FILE)) is not None:
        try:
            _check(directory, shard.generation, shard.rows)
        except Exception as error:  # noqa: BLE001 (invalid content may have a valid checksum)
            # a process that replaces states removes this file first and writes it last
            if stamp(directory / STATES_FILE) == checked:
                return (
                    f"some states cannot be used: {error}: {states_command(directory)} replaces "
                    "them"
                )
        else:
            break
    return ""


def _check(directory: Path, generation: str, rows: int) -> None:
    manifest = read_states_manifest(directory)
    if manifest.generation != generation:
        raise ArtefactError("the states are of another generation")
    states = StateFile.open_beside(directory, manifest)
    if states.rows != rows:
        raise ArtefactError(f"the states have {states.rows} rows, the shard has {rows}")
    OpenFile(directory / DATA).verify(manifest.sha256, manifest.bytes, advice="")
