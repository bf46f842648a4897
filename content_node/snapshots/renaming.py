"""What is restored goes on by itself: its log gets a name of its own.

Two logs of one name that go on apart would be taken for one: writes would reach only one of them,
and a front would wait for writes that were lost. A log that follows a journal keeps its name, since
it brings what all others bring.
"""

import contextlib
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from winnow.content_node.live.making import connect
from winnow.content_node.live.reading import LIVE, log_path
from winnow.content_node.live.schema import get_state, put_state
from winnow.content_node.merging.names import newest_first
from winnow.content_node.shard.manifest import SHARD_FILE, read_shard_manifest, write
from winnow.content_node.states.manifest import (
    STATES_FILE,
    read_states_manifest,
    write_states_manifest,
)
from winnow.errors import ArtefactError
from winnow.files.durable import sync_directory, sync_file
from winnow.journal.journal import JOURNAL


def rename_logs(directory: Path) -> None:
    """Renames the logs in a directory that was restored, an index or a shard.

    Raises:
        ArtefactError: a manifest is damaged.
        OSError: it cannot be written; `sqlite3.Error` as well.

    """
    for shard in (directory, *directory.iterdir()):
        if log_path(shard).exists():
            _rename(shard, uuid4().hex)


def _rename(shard: Path, name: str) -> None:
    with contextlib.closing(connect(log_path(shard))) as connection:
        state = get_state(connection)
        if state.log_id.startswith(JOURNAL):
            return
        connection.execute("BEGIN IMMEDIATE")
        put_state(connection, replace(state, log_id=name))
        connection.execute("COMMIT")
    sync_file(log_path(shard))
    for generation in newest_first(each.name for each in (shard / LIVE).iterdir()):
        place = shard / LIVE / generation
        manifest = read_shard_manifest(place)
        renamed = write(place / SHARD_FILE, manifest.model_copy(update={"log_id": name}))
        sync_directory(place)
        _rename_states(place, manifest.generation, renamed.generation)


def _rename_states(directory: Path, before: str, after: str) -> None:
    """The rows are the same under the new name of the generation."""
    if not (directory / STATES_FILE).exists():
        return
    with contextlib.suppress(ArtefactError):  # then they are not used
        states = read_states_manifest(directory)
        if states.generation == before:
            write_states_manifest(directory, states.model_copy(update={"generation": after}))
