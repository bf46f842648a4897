"""Makes the directory of a half while the parent shard is served."""

import asyncio
import shutil
from functools import partial
from pathlib import Path

import structlog

from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.disk_space import check_disk_space
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.child_process import WritingChild
from winnow.errors import ArtefactError
from winnow.storage.partial import restored_directory

_log = structlog.get_logger("content_node")


async def make_half(
    parent: LiveShard,
    half: int,
    directory: Path,
    *,
    bundle: Path,
    feeding: bool,
    one_at_a_time: asyncio.Lock,
) -> None:
    """Writes a half of a served shard to `directory`, which appears once it is complete.

    The half then follows the log of its parent, from the end of the parent's base.

    Args:
        parent: the shard.
        half: number of the half.
        directory: the directory of the half; must not exist.
        bundle: the bundle whose reader's precomputed states are copied.
        feeding: whether the node takes writes.
        one_at_a_time: a lock that is held while any shard of the node is merged.

    Raises WinnowError if the half cannot be written, or the shard cannot be split.

    """
    if not feeding and parent.sequence > parent.merged:
        raise ArtefactError(
            f"the shard has {parent.sequence - parent.merged} unmerged writes: start this node "
            "with --feed to split it"
        )
    if not feeding and parent.follows_journal:
        raise ArtefactError(
            "the shard follows a journal: start this node with --feed and --journal to split it"
        )
    async with one_at_a_time:  # a merge would remove the files of the base
        writer = _HalfWriter(parent, half, directory, bundle=bundle, feeding=feeding)
        try:
            await DaemonWork(writer.run).result()
        finally:
            writer.stop()
        parent.hold_log(f"half {half}", parent.merged)  # until the half follows


class _HalfWriter:
    """Writes one half; runs once, in any thread."""

    def __init__(
        self, parent: LiveShard, half: int, directory: Path, *, bundle: Path, feeding: bool
    ) -> None:
        self._number, self._half, self._directory = parent.base.manifest.shard, half, directory
        self._base = parent.directory
        self._open_child = partial(_writing_child, parent, half, bundle, feeding)
        self._child: WritingChild | None = None
        self._is_stopped = False

    def run(self) -> None:
        """Writes the half, in a child process."""
        with restored_directory(self._directory) as content:
            for leftover in content.iterdir():  # an interrupted attempt may be of an older base
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
            # a full disk would stop the writes of all shards
            check_disk_space(
                self._directory, self._expected_size(), "move another shard to another node"
            )
            self._child = child = self._open_child(content)
            if self._is_stopped:
                child.stop()
            made = child.run()
        _log.info(
            "half of a shard made",
            shard=self._number,
            half=self._half,
            passages=made.passages,
            sequence=made.sequence,
        )
        if made.without_states:
            _log.warning("passages were left without precomputed data", reason=made.without_states)

    def _expected_size(self) -> int:
        """Returns the expected bytes of the half: a hash splits the passages evenly."""
        return sum(each.stat().st_size for each in self._base.iterdir() if each.is_file()) // 2

    def stop(self) -> None:
        """Ends the child process; may be called from any thread."""
        self._is_stopped = True
        if self._child is not None:
            self._child.stop()


def _writing_child(
    parent: LiveShard, half: int, bundle: Path, feeding: bool, content: Path
) -> WritingChild:
    following = "following" if feeding else "fixed"
    paths = map(str, (parent.directory, parent.shard_directory))
    return WritingChild(__package__ or "", *paths, str(half), str(content), following, str(bundle))
