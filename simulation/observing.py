"""Reports what the logs of shards append to a checker."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from simulation.history import AppliedWrite
from simulation.process import current_process
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.domain.shard import shard_number_of

OnAppend = Callable[[str, int, str, list[AppliedWrite]], None]
"""Called with the id of an index, a shard, the name of the node, and the writes that its log now
holds. The id is empty without a catalog."""
_INDEX = "index-"
"""What the name of the directory of a named index begins with."""


@contextlib.contextmanager
def observed_appends(on_append: OnAppend) -> Iterator[None]:
    """Makes every log report its writes, also if the node is killed right after the commit."""
    original = WriteLog.append

    def append(
        log: WriteLog,
        writes: Sequence[LoggedWrite],
        journal_position: str | None = None,
        log_id: str = "",
    ) -> None:
        try:
            original(log, writes, journal_position, log_id)
        finally:
            if writes and log.last >= writes[-1].sequence:
                shard = shard_number_of(log.path.parent.parent.name)
                assert shard is not None
                index = log.path.parent.parent.parent.name
                index_id = index.removeprefix(_INDEX) if index.startswith(_INDEX) else ""
                on_append(index_id, shard, current_process().name, list(map(applied, writes)))

    WriteLog.append = append  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        WriteLog.append = original  # type: ignore[method-assign]


def applied(write: LoggedWrite) -> AppliedWrite:
    """Returns a write of a log."""
    text = write.put.passage.text if write.put is not None else None
    return AppliedWrite(write.sequence, write.id, text, write.version)
