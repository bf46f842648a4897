"""What a node can never serve, told before anything has begun. Looks at names of files only."""

from winnow.bundle import Bundle
from winnow.content_node.reader import check_lengths
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest
from winnow.domain.shard import INDEX_FILE, shard_name
from winnow.errors import ArtefactError
from winnow.quoting import many
from winnow.settings.source import SettingsError


def expect_serviceable(settings: NodeSettings, bundle: Bundle) -> None:
    """Checks what no waiting mends. A damaged shard is not among it: somebody may mend that, and
    until then the node tells whoever asks it.

    Raises:
        SettingsError: the bundle cannot be read with these settings.
        ArtefactError: there is no shard.

    """
    try:
        check_lengths(bundle, settings.inference, settings.max_tokens)
    except ArtefactError as error:
        raise SettingsError(str(error)) from error
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
