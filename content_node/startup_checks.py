"""Checks settings when a node starts, and gives advice on its shards."""

from collections.abc import Iterator
from pathlib import Path

from winnow.bundle import Bundle
from winnow.content_node.reader import check_lengths
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard import StoredSegment
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest
from winnow.content_node.states.advice import states_command
from winnow.content_node.states.manifest import STATES_FILE
from winnow.domain.shard import INDEX_FILE, number_of, shard_name
from winnow.errors import ArtefactError
from winnow.quoting import many
from winnow.settings.errors import SettingsError


def check_reader(settings: NodeSettings, bundle: Bundle) -> None:
    """Raises SettingsError if the bundle's reader cannot run with these settings."""
    try:
        check_lengths(bundle, settings.inference, settings.max_tokens)
    except ArtefactError as error:
        raise SettingsError(str(error)) from error


def shards_to_serve(settings: NodeSettings) -> dict[Path, str]:
    """The directories of the shards, each with the URL of snapshots to restore it from.

    The URL is empty without --pull. Checks the names of files, not their content: a damaged shard
    may be repaired while the node runs.

    Raises:
        SettingsError: neither --shard nor --shards is given.
        ArtefactError: there is no shard.

    """
    directories = list(settings.shard)
    if settings.shards is not None:
        directories += _shards_in(settings.shards)
    if not directories:
        raise SettingsError("name the shards to serve: --shard DIRECTORY or --shards DIRECTORY")
    if not settings.pull:
        # the others are served without a shard that is missing
        problems = list(map(_missing, directories))
        if all(problems):
            raise ArtefactError(problems[0])
        return dict.fromkeys(directories, "")
    if len(directories) == 1:
        return {directories[0]: settings.pull}
    return {each: f"{settings.pull.rstrip('/')}/{each.name}" for each in directories}


def _shards_in(index: Path) -> list[Path]:
    """The shards in a directory, by name."""
    try:
        found = [each for each in index.iterdir() if number_of(each.name) is not None]
    except OSError as error:
        raise ArtefactError(f"cannot list the shards in {index}: {error.strerror}") from error
    if not found:
        raise ArtefactError(
            f"there is no shard in {index}: name the directory of an index, which has directories "
            f"such as {shard_name(0, 1)}"
        )
    return sorted(found)


def _missing(directory: Path) -> str:
    """Why a directory holds no shard; empty if it holds one."""
    if not directory.is_dir():
        return f"there is no directory {directory} to serve"
    if (directory / INDEX_FILE).exists() and not (directory / SHARD_FILE).exists():
        shards = read_index_manifest(directory).shards
        return (
            f"{directory} is an index of {many(shards, 'shard')}: --shards {directory} serves all, "
            f"--shard {directory / shard_name(0, shards)} one of them"
        )
    return ""


def shard_advice(base: StoredSegment, shard: Path, bundle: Bundle) -> Iterator[str]:
    """Yields improvements of a shard as sentences, each with a command."""
    rebuild = "`winnow index build --passages INDEX --out NEW --shards N` converts it"
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
