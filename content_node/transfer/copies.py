"""Keeps the files of shards open while other nodes copy them."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from winnow.content_node.snapshots.contents import ShardFiles, SnapshotFile
from winnow.errors import NotFoundError
from winnow.quoting import shortened

IDLE_SECONDS = 300.0
"""Seconds without a read after which a copy is closed. Nodes verify large files between reads."""
OpenFiles = Callable[[Path], AbstractContextManager[ShardFiles]]


@dataclass(eq=False, slots=True, kw_only=True)
class OpenCopy:
    """The open files of a shard that another node copies."""

    id: str
    contents: ShardFiles
    files: dict[str, SnapshotFile]
    """The files by path."""
    resources: ExitStack
    on_read: "Callable[[OpenCopy], None]"
    """Called with each read."""
    timer: asyncio.TimerHandle | None = None
    """Timer that closes the copy after `IDLE_SECONDS` without a read."""


class OpenCopies:
    """Opens copies, and closes idle copies. Used on the event loop."""

    def __init__(self, open_files: OpenFiles) -> None:
        self._open_files = open_files
        self._copies: dict[str, OpenCopy] = {}
        self._copy_of: dict[tuple[Path, str], str] = {}
        """The id of the open copy, by the directory of the shard and the name of the node."""
        self._closing: set[asyncio.Task[None]] = set()

    async def open(
        self, shard: Path, node: str, on_read: Callable[[OpenCopy], None] = lambda _: None
    ) -> OpenCopy:
        """Opens a copy of a shard for a node; closes the node's earlier copy of this shard.

        `on_read` is called with each read of the copy.

        Raises the errors of `snapshots.contents.open_shard_files`.
        """
        resources = ExitStack()
        contents = await asyncio.to_thread(resources.enter_context, self._open_files(shard))
        files = {each.path: each for each in (*contents.files, *contents.states)}
        copy = OpenCopy(
            id=uuid4().hex, contents=contents, files=files, resources=resources, on_read=on_read
        )
        self._close(self._copy_of.get((shard, node), ""))
        self._copies[copy.id], self._copy_of[shard, node] = copy, copy.id
        self._start_timer(copy)
        return copy

    async def read(self, copy_id: str, path: str, start: int, count: int) -> bytes:
        """Reads up to `count` bytes of a file; none at the end of the file.

        Raises NotFoundError for an unknown copy or file, and ArtefactError if the read fails.
        """
        copy = self._copies.get(copy_id)
        if copy is None:
            raise NotFoundError(f"copy {shortened(copy_id)} is not open any more: open it again")
        if (file := copy.files.get(path)) is None:
            raise NotFoundError(f"{shortened(path)} is not a file of the shard")
        self._start_timer(copy)
        copy.on_read(copy)
        count = max(min(count, file.entry.bytes - start), 0)
        return await asyncio.to_thread(file.file.read, count, start)

    async def close(self) -> None:
        """Closes all copies."""
        for copy_id in list(self._copies):
            self._close(copy_id)
        while self._closing:
            await asyncio.wait(self._closing)

    def _start_timer(self, copy: OpenCopy) -> None:
        if copy.timer is not None:
            copy.timer.cancel()
        loop = asyncio.get_running_loop()
        copy.timer = loop.call_later(IDLE_SECONDS, self._close, copy.id)

    def _close(self, copy_id: str) -> None:
        copy = self._copies.pop(copy_id, None)
        if copy is None:
            return
        self._copy_of = {key: each for key, each in self._copy_of.items() if each != copy_id}
        if copy.timer is not None:
            copy.timer.cancel()
        task = asyncio.create_task(asyncio.to_thread(copy.resources.close))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
