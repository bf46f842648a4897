"""Copies a shard from another node into a new directory."""

import asyncio
from pathlib import Path

import structlog

from winnow.content_node.disk_space import check_disk_space
from winnow.content_node.live.custody import Custody, Role, write_custody
from winnow.content_node.snapshots.pulling import pull_shards
from winnow.content_node.transfer.remote import PeerCopy, PeerShard
from winnow.errors import ArtefactError
from winnow.storage.partial import restored_directory
from winnow.storage.pull import CopyProgress, PullSource

_log = structlog.get_logger("content_node")


async def receive_shard(
    peer: PeerShard,
    owner: str,
    directory: Path,
    progress: CopyProgress,
    *,
    feeding: bool,
    only_holder: bool = True,
) -> None:
    """Copies a shard into `directory`, which appears once all files are copied and verified.

    Precomputed data that is damaged there is left out.

    The files that an interrupted call has copied are reused. If the other node takes writes, the
    copy follows the log of that node.

    Args:
        peer: the shard on the other node.
        owner: the name of the other node.
        directory: the new directory; must not exist.
        progress: receives the progress of copying.
        feeding: whether this node takes writes.
        only_holder: whether the shard is assigned to this node alone.

    Raises ArtefactError if the directory exists or cannot be written, the disk has no room, or this
    node takes no writes although the other one does. Raises another WinnowError if the other node
    fails.

    """
    copy = await peer.open_copy()
    if copy.takes_writes and not feeding:
        raise ArtefactError(
            f"shard {peer.shard} takes writes at node {owner}: start this node with --feed"
        )
    if copy.takes_writes and not only_holder:
        raise ArtefactError(
            f"shard {peer.shard} takes writes without a journal, so only one node can have it: "
            "assign it to one node, or start its nodes with --journal"
        )
    size = sum(file.bytes for file in copy.files.values())
    await asyncio.to_thread(check_disk_space, directory, size, "move the shard to another node")
    # if this is cancelled, the channel is closed, and the next read ends the thread
    await asyncio.to_thread(_pull_files, copy, owner, directory, progress)
    _log.info(
        "shard received",
        shard=peer.shard,
        node=owner,
        address=peer.address,
        sequence=copy.sequence,
    )


def _pull_files(copy: PeerCopy, owner: str, directory: Path, progress: CopyProgress) -> None:
    source = PullSource(
        storage=copy,
        source=f"the shard at node {owner}",
        advice_if_missing="verify the shard there",
        advice_if_damaged="verify the shard there",
    )
    with restored_directory(directory) as content:
        pull_shards(source, copy.files, content, progress)
        if copy.takes_writes:
            write_custody(content, Custody(Role.FOLLOWER, owner, copy.moves))
