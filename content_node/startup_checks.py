"""Checks settings when a node starts, and gives advice on its shard."""

from collections.abc import Iterator
from pathlib import Path

from winnow.bundle import Bundle
from winnow.content_node.reader import check_lengths
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard import StoredSegment
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest
from winnow.content_node.states.advice import states_command
from winnow.content_node.states.manifest import STATES_FILE
from winnow.domain.shard import INDEX_FILE, shard_name
from winnow.errors import ArtefactError
from winnow.quoting import many
from winnow.settings.errors import SettingsError


def check_reader(settings: NodeSettings, bundle: Bundle) -> None:
    """Raises SettingsError if the bundle's reader cannot run with these settings."""
    try:
        check_lengths(bundle, settings.inference, settings.max_tokens)
    except ArtefactError as error:
        raise SettingsError(str(error)) from error


def check_settings(settings: NodeSettings, bundle: Bundle) -> None:
    """Refuses settings that cannot be served. Checks the names of files, not their content.

    A damaged shard is not refused here: it may be repaired while the node runs.

    Raises:
        SettingsError: the bundle's reader cannot run with these settings.
        ArtefactError: there is no shard.

    """
    check_reader(settings, bundle)
    directory = settings.shard
    if settings.pull:
        return
    if not directory.is_dir():
        raise ArtefactError(f"there is no directory {directory} to serve")
    if (directory / INDEX_FILE).exists() and not (directory / SHARD_FILE).exists():
        shards = read_index_manifest(directory).shards
        raise ArtefactError(
            f"{directory} is an index of {many(shards, 'shard')}: a node serves one, such as "
            f"{directory / shard_name(0, shards)}; `winnow up` serves all on this machine"
        )


def shard_advice(base: StoredSegment, shard: Path, bundle: Bundle) -> Iterator[str]:
    """Yields improvements of a shard as sentences, each with a command."""
    rebuild = "`winnow index build --passages INDEX --out NEW --shards N` brings it up to date"
    if not base.manifest.has_checksum:
        yield (
            "the shard is of an older version: changed values in its manifest are not detected; "
            f"{rebuild}"
        )
    if base.manifest.words is None:
        yield (
            "the shard is of an older version without words: they were counted in this shard "
            "alone, which took time and memory, and scores of several such shards cannot be "
            f"compared; {rebuild}"
        )
    elif not base.manifest.words.posting_files:
        yield (
            "the shard is of an older version without postings: they were computed, which took "
            f"time and memory; {rebuild}"
        )
    # damaged states and those of another reader are logged when they are opened
    has_states = any((file.path.parent / STATES_FILE).exists() for file in base.files[:1])
    missing = base.manifest.passages - base.states.passages if base.states is not None else 0
    if bundle.manifest.lower_fingerprint:
        if missing:
            yield (
                f"{missing} of {base.manifest.passages} passages have no states yet: merges make "
                f"some each time, {states_command(shard, bundle.directory)} makes all"
            )
        if base.manifest.passages and not has_states:
            yield (
                "the shard has no states: half of the reading is done again for every question; "
                f"{states_command(shard, bundle.directory)} does it once"
            )
    elif has_states:
        yield (
            "the shard has states, which this bundle's reader cannot use: it sees question and "
            "passage together in every layer"
        )
