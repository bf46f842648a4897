"""The state of a shard that base and log make: what is stored under each id, and the view of it.

Replaying the log and committing to it end in the same state, since both apply logged writes. Used
by one thread at a time.
"""

from collections.abc import Iterable, Iterator, Sequence

from winnow.content_node.live.buffer import Buffer
from winnow.content_node.live.entry import Logged
from winnow.content_node.live.write_conflict import (
    Same,
    StoredVersion,
    StoredWords,
    WriteConflict,
    unchanged_puts,
)
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.content_node.shard.view import ShardView
from winnow.domain.write import Written
from winnow.errors import ArtefactError
from winnow.passages.canonical import PassageDigest, same_content
from winnow.passages.encoding import pack_ids


class LiveState:
    """A base, and the later writes that were applied to it."""

    def __init__(self, base: StoredSegment, log_id: str) -> None:
        """Has applied no write yet; `log_id` names the log, empty if there is none."""
        self.base = base
        self._log_id = log_id
        self.sequence = base.manifest.sequence
        """The number of the last write that was applied, or that the base holds."""
        self._buffer = Buffer(base)
        self._since: dict[str, StoredVersion] = {}
        """What was stored after the base, by id."""
        self.follow(log_id)

    @property
    def view(self) -> ShardView:
        """The view that is to be served."""
        return self._buffer.view

    def follow(self, log_id: str) -> None:
        """Names the log of the writes, once there is one."""
        self._log_id = log_id
        if log_id:
            self._buffer.show(self.sequence, log_id)

    def conflict(self, identifiers: Iterable[str], same: Same = same_content) -> WriteConflict:
        """Decides the next writes, which are of these ids."""
        return WriteConflict(
            known=self.known(set(identifiers)).get,
            load=self._load,
            sequence=self.sequence,
            rows=self._buffer.rows,
            same=same,
        )

    def find_unchanged(self, puts: Sequence[PassageDigest]) -> list[Written | None]:
        """For each put the outcome if it changes nothing now, and None if it would be stored."""
        return unchanged_puts(
            puts,
            self.known({put.id for put in puts}),
            lambda row: self.view.load(row).passage,
            lambda outcome: Written(outcome, self.sequence, self.view.log_id),
        )

    def known(self, identifiers: Iterable[str]) -> dict[str, StoredVersion | None]:
        """What is stored under each id."""
        found = {each: self._since.get(each) for each in identifiers}
        others = [each for each, since in found.items() if since is None]
        return found | dict(zip(others, self._in_base(others), strict=True))

    def apply(self, writes: Sequence[Logged]) -> None:
        """Applies the next writes of the log; passes over those that the base holds.

        Raises:
            ArtefactError: a write before them is missing, or one ends a passage that is not there.

        """
        new = [write for write in writes if write.sequence > self.sequence]
        if not new:
            return
        if new[0].sequence != self.sequence + 1:
            raise ArtefactError(
                f"the log of shard {self.base.manifest.shard} goes on with write "
                f"{new[0].sequence}, its base ends with {self.sequence}: copy the shard again"
            )
        dead: list[int] = []
        row = self._buffer.rows
        for write in new:
            if write.removed is not None:
                dead.append(self._row_of(write))
            if write.put is None:
                self._since[write.id] = StoredVersion(write.version, None, write.sequence)
            else:
                self._since[write.id] = StoredVersion(write.version, row, write.sequence)
                row += 1
        self._buffer.change(new, dead)
        self.sequence = new[-1].sequence
        self._buffer.show(self.sequence, self._log_id)

    def _load(self, row: int) -> StoredWords:
        stored = self.view.load(row)
        return stored.passage, pack_ids((*stored.title_ids, *stored.tokens.ids))

    def _row_of(self, write: Logged) -> int:
        """The row of the passage that a write ends."""
        known = self.known([write.id])[write.id]
        if known is None or known.row is None:
            raise ArtefactError(
                f"write {write.sequence} ends a passage that shard {self.base.manifest.shard} does "
                "not have: base and log do not belong together; copy the shard again"
            )
        return known.row

    def _in_base(self, identifiers: Sequence[str]) -> Iterator[StoredVersion | None]:
        store = self.base.store
        for identifier, entry in zip(identifiers, store.locate_all(identifiers), strict=True):
            if entry is not None:
                yield StoredVersion(entry.version, entry.row, entry.sequence)
            else:
                version = store.deletion_version(identifier)
                yield None if version is None else StoredVersion(version, None)
