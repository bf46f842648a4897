"""What a node checks when it starts: settings that can never be served, and advice for its
shard.
"""

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
from winnow.settings.source import SettingsError


def check_reader(settings: NodeSettings, bundle: Bundle) -> None:
    """Raises SettingsError if the bundle's reader cannot run with these settings."""
    try:
        check_lengths(bundle, settings.inference, settings.max_tokens)
    except ArtefactError as error:
        raise SettingsError(str(error)) from error


def check_settings(settings: NodeSettings, bundle: Bundle) -> None:
    """Refuses settings that cannot be served. Looks only at names of files.

    A damaged shard is not refused here: it may be repaired while the node runs, and until then the
    node tells its callers.

    Raises:
        SettingsError: the bundle cannot be read with these settings.
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
    """Yields sentences on how a shard could be served better, each with a command."""
    rebuild = "`winnow index build --passages INDEX --out NEW --shards N`"
    if not base.manifest.has_checksum:
        yield (
            "the shard is of an older version: a changed value in its manifest would not be "
            f"noticed; {rebuild} brings it up to date"
        )
    if base.manifest.words is None:
        yield (
            "the shard is of an older version and has no words: they were counted in this shard "
            "alone, which took time and memory, and scores of several such shards cannot be "
            f"compared; {rebuild} brings it up to date"
        )
    elif not base.manifest.words.posting_files:
        yield (
            "the shard is of an older version: the rows of each word were collected in memory, "
            f"which took time; {rebuild} brings it up to date"
        )
    # damaged states and those of another reader are logged when they are opened
    there = any((file.path.parent / STATES_FILE).exists() for file in base.files[:1])
    lacking = base.manifest.passages - base.states.passages if base.states is not None else 0
    if bundle.manifest.lower_fingerprint:
        if lacking:
            yield (
                f"{lacking} of {base.manifest.passages} passages have no states yet: merges make "
                f"some each time, {states_command(shard, bundle.directory)} makes all"
            )
        if base.manifest.passages and not there:
            yield (
                "the shard has no states: half of the reading is done again for every question; "
                f"{states_command(shard, bundle.directory)} does it once"
            )
    elif there:
        yield (
            "the shard has states, which this bundle's reader cannot use: it sees question and "
            "passage together in every layer"
        )
