"""Checks settings when a node starts, and gives advice on its shards."""

from collections.abc import Iterator
from pathlib import Path

from winnow.bundle import Bundle
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard import StoredSegment
from winnow.content_node.shard.hnsw import INSTALL_HNSWLIB
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest
from winnow.content_node.states.advice import states_command
from winnow.content_node.states.manifest import STATES_FILE
from winnow.domain.shard import EXACT_UP_TO, INDEX_FILE, shard_name, shard_number_of
from winnow.errors import ArtefactError
from winnow.quoting import many
from winnow.reading import check_lengths
from winnow.reading.states_kind import TOKEN_VECTORS
from winnow.settings.errors import SettingsError


def check_reader(settings: NodeSettings, bundle: Bundle) -> None:
    """Raises SettingsError if the bundle's reader cannot run with these settings."""
    try:
        check_lengths(bundle, settings.inference, settings.max_tokens)
    except ArtefactError as error:
        raise SettingsError(str(error)) from error


def shards_to_serve(settings: NodeSettings) -> dict[Path, str]:
    """Returns the directories of the shards, each with the URL of snapshots to restore it from.

    The URL is empty without --pull. The names of files are checked, but not their content: a
    damaged shard may be repaired while the node runs.

    Raises:
        SettingsError: neither --shard nor --shards is given.
        ArtefactError: none of the directories holds a shard.

    """
    directories = list(settings.shard)
    if settings.shards is not None:
        directories += _shards_in(settings.shards)
    if not directories:
        raise SettingsError("name the shards to serve: --shard DIRECTORY or --shards DIRECTORY")
    if not settings.pull:
        # a missing shard does not stop the node from serving the others
        problems = list(map(_directory_problem, directories))
        if all(problems):
            raise ArtefactError(problems[0])
        return dict.fromkeys(directories, "")
    if len(directories) == 1:
        return {directories[0]: settings.pull}
    return {each: f"{settings.pull.rstrip('/')}/{each.name}" for each in directories}


def _shards_in(index: Path) -> list[Path]:
    """Lists the directories of the shards in an index, sorted."""
    try:
        found = [each for each in index.iterdir() if shard_number_of(each.name) is not None]
    except OSError as error:
        raise ArtefactError(f"cannot list the shards in {index}: {error.strerror}") from error
    if not found:
        raise ArtefactError(
            f"there is no shard in {index}: name the directory of an index, which has directories "
            f"such as {shard_name(0, 1)}"
        )
    return sorted(found)


def _directory_problem(directory: Path) -> str:
    """Returns why a directory holds no shard; empty if it may hold one."""
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
    """Yields sentences of advice on a shard, most of them with a command to run."""
    rebuild = "`winnow index build --passages INDEX --out NEW --shards N` converts it"
    if not base.manifest.has_checksum:
        yield (
            "the shard was built by an older version, so damage of its manifest is not detected: "
            f"{rebuild}"
        )
    if base.manifest.words is None:
        yield (
            "the shard was built by an older version, without word counts: they were computed at "
            "startup, which took time and memory, and the scores of several such shards cannot be "
            f"compared; {rebuild}"
        )
    elif not base.manifest.words.posting_files:
        yield (
            "the shard was built by an older version, without postings: they were computed at "
            f"startup, which took time and memory; {rebuild}"
        )
    if bundle.manifest.late_interaction and base.token_vectors is None and base.manifest.passages:
        yield (
            "the shard does not have the token vectors of every passage, so passages are ranked "
            f"without late interaction: {states_command(shard, bundle.directory, TOKEN_VECTORS)} "
            "computes them"
        )
    if base.manifest.graph is None and base.manifest.passages > EXACT_UP_TO:
        yield (
            f"the shard has no graph, so each question is compared with all "
            f"{base.manifest.passages:,} passages: install hnswlib ({INSTALL_HNSWLIB}); "
            f"{rebuild}"
        )
    # damaged states and those of another reader are logged when they are opened
    has_states = any((file.path.parent / STATES_FILE).exists() for file in base.files[:1])
    missing = base.manifest.passages - base.states.passages if base.states is not None else 0
    if bundle.manifest.lower_layers_fingerprint:
        if missing:
            yield (
                f"{missing} of {base.manifest.passages} passages have no precomputed states yet: "
                f"each merge computes some, {states_command(shard, bundle.directory)} computes all"
            )
        if base.manifest.passages and not has_states:
            yield (
                "the shard has no precomputed states, so half of the reading is repeated for every "
                f"question: {states_command(shard, bundle.directory)} does it once"
            )
    elif has_states:
        yield (
            "the shard has precomputed states, but the reader of this bundle cannot use them, "
            "because it is a full cross-encoder"
        )
