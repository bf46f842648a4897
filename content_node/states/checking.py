"""Checking the states beside a shard, which others may be making anew meanwhile."""

from pathlib import Path

from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.states.advice import remedy
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import DATA, STATES_FILE, read_states_manifest
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.watched import stamp


def states_fault(directory: Path) -> str:
    """What is wrong with the states beside a generation; empty if nothing is, or there are none.

    Raises:
        ArtefactError: the generation itself is damaged, or gone.

    """
    generation, rows = _expected(directory)
    while (found := stamp(directory / STATES_FILE)) is not None:
        try:
            _check(directory, generation, rows)
        except Exception as error:  # noqa: BLE001 (a checksum can be made for any nonsense)
            # it is the first to go when states are made anew, and the last to come
            if stamp(directory / STATES_FILE) == found:
                return f"not all of its states can be used: {error}; {remedy(directory)} mends them"
        else:
            break
    return ""


def _expected(directory: Path) -> tuple[str, int]:
    manifest = read_shard_manifest(directory)
    return manifest.generation, manifest.rows


def _check(directory: Path, generation: str, rows: int) -> None:
    manifest = read_states_manifest(directory)
    if manifest.generation != generation:
        raise ArtefactError("they are of another generation")
    states = StateFile.beside(directory, manifest)
    if states.rows != rows:
        raise ArtefactError(f"they are of {states.rows} rows, the shard has {rows}")
    OpenFile(directory / DATA).verify(manifest.sha256, manifest.bytes, mend="")
