"""Removes the precomputed data of a built shard, once a merged generation has this data.

The data can be computed again, and states are several times as large as all other files of the
shard. A process that has the data open can still read it.
"""

from pathlib import Path

from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import read_states_manifest
from winnow.content_node.states.writing import partial_files
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.durable import sync_directory
from winnow.files.lock import locked
from winnow.reading.states_kind import READER_STATES, StatesKind


def are_complete(directory: Path, kind: StatesKind = READER_STATES) -> bool:
    """Whether every passage of a generation has data. Checks sizes, not checksums."""
    try:
        shard, states = read_shard_manifest(directory), read_states_manifest(directory, kind)
        passages = StateFile.open_beside(directory, states, kind).passages
    except ArtefactError:
        return False
    return (states.generation, passages) == (shard.generation, shard.passages)


def drop_states(directory: Path, kind: StatesKind = READER_STATES) -> bool:
    """Removes the data beside a generation, and the files of an interrupted computation.

    Removes nothing, and returns False, while a process computes this data. After an interruption no
    node uses the remaining files, and the next call removes them.

    Raises:
        OSError: a file cannot be removed.

    """
    if not _states_files(directory, kind):
        return True
    try:
        with locked(directory / kind.lock, f"{kind.noun} of {directory} are being written"):
            # the manifest first: without it nodes ignore the data
            (directory / kind.manifest).unlink(missing_ok=True)
            sync_directory(directory)
            for path in _states_files(directory, kind):
                path.unlink()
    except UnavailableError:
        return False
    return True


def _states_files(directory: Path, kind: StatesKind) -> list[Path]:
    finished = [directory / name for name in kind.files]
    return [*(path for path in finished if path.exists()), *partial_files(directory, kind)]
