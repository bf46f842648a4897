"""Removes the precomputed states of a built shard, once a merged generation has states.

The states can be computed again, and are several times as large as all other files of the shard. A
process that has them open can still read them.
"""

from pathlib import Path

from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import FILES, STATES_FILE, read_states_manifest
from winnow.content_node.states.writing import LOCK, partial_files
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.durable import sync_directory
from winnow.files.lock import locked


def are_complete(directory: Path) -> bool:
    """Whether every passage of a generation has states. Checks sizes, not checksums."""
    try:
        shard, states = read_shard_manifest(directory), read_states_manifest(directory)
        passages = StateFile.open_beside(directory, states).passages
    except ArtefactError:
        return False
    return (states.generation, passages) == (shard.generation, shard.passages)


def drop_states(directory: Path) -> None:
    """Removes the states beside a generation, and the files of an interrupted `index states`.

    Removes nothing while a process computes states. After an interruption no node uses the
    remaining files, and the next call removes them.

    Raises:
        OSError: a file cannot be removed.

    """
    if not _files(directory):
        return
    try:
        with locked(directory / LOCK, f"states of {directory} are being written"):
            # the manifest first: without it nodes ignore the states
            (directory / STATES_FILE).unlink(missing_ok=True)
            sync_directory(directory)
            for path in _files(directory):
                path.unlink()
    except UnavailableError:
        return


def _files(directory: Path) -> list[Path]:
    finished = [directory / name for name in FILES]
    return [*(path for path in finished if path.exists()), *partial_files(directory)]
