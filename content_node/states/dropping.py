"""Removes states of a shard's first build, once a newer generation has its own.

They are derived, and several times as large as all else. A process that has them open can read on.
"""

from pathlib import Path

from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import FILES, STATES_FILE, read_states_manifest
from winnow.content_node.states.writing import LOCK, partial_files
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.durable import sync_directory
from winnow.files.lock import locked


def are_whole(directory: Path) -> bool:
    """Whether every passage of a generation has states beside it. Checks sizes, not checksums."""
    try:
        manifest, found = read_shard_manifest(directory), read_states_manifest(directory)
        held = StateFile.beside(directory, found).held
    except ArtefactError:
        return False
    return (found.generation, held) == (manifest.generation, manifest.passages)


def drop_states(directory: Path) -> None:
    """Removes the states beside a generation, and the files of an interrupted `index states`.

    Removes nothing while a process computes states. Interrupted, it leaves no states that a node
    would use, and the next call removes the rest.

    Raises:
        OSError: a file cannot be removed.

    """
    if not _files(directory):
        return
    try:
        with locked(directory / LOCK, f"states of {directory} are being written"):
            # the manifest first: without it states are not used
            (directory / STATES_FILE).unlink(missing_ok=True)
            sync_directory(directory)
            for path in _files(directory):
                path.unlink()
    except UnavailableError:
        return


def _files(directory: Path) -> list[Path]:
    named = [directory / name for name in FILES]
    return [*(path for path in named if path.exists()), *partial_files(directory)]
