"""The state of a shard with its writes: the stored version of each id, and the view.

Replaying the log and committing to the log give the same state, since both apply logged writes. The
state is used by one thread at a time.
"""

from collections.abc import Iterable, Iterator, Sequence

from winnow.content_node.live.buffer import ViewBuilder
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.write_conflict import (
    PassageAndWords,
    SamePassage,
    StoredVersion,
    WriteConflict,
    find_unchanged_puts,
)
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.content_node.shard.view import ShardView
from winnow.domain.tenant import is_whole_tenant
from winnow.domain.write import Written
from winnow.errors import ArtefactError
from winnow.passages.canonical import PassageDigest, same_content
from winnow.passages.encoding import pack_ids


class LiveState:
    """A base, and the later writes that were applied to it."""

    def __init__(self, base: StoredSegment, log_id: str) -> None:
        """Starts without later writes; `log_id` is the id of the log, empty if there is none."""
        self.base = base
        self.sequence = base.manifest.sequence
        """The number of the last applied write; at first, of the last write that the base holds."""
        self._views = ViewBuilder(base)
        self._unmerged: dict[str, StoredVersion] = {}
        """The stored version of each id that writes after the base changed."""
        self.has_deleted_tenant = False
        """Whether a write after the base deleted a whole tenant."""
        self.set_log_id(log_id)

    @property
    def view(self) -> ShardView:
        """The view with all applied writes."""
        return self._views.view

    def set_log_id(self, log_id: str) -> None:
        """Sets the id of the log, which the first write creates."""
        self._log_id = log_id
        if log_id:
            self._views.set_position(self.sequence, log_id)

    def write_conflict(
        self, identifiers: Iterable[str], same: SamePassage = same_content
    ) -> WriteConflict:
        """Returns the `WriteConflict` that decides the next writes; their ids are `identifiers`."""
        return WriteConflict(
            stored_version=self.stored_versions(set(identifiers)).get,
            versions_of_tenant=self._versions_of_tenant,
            load=self._load_passage,
            sequence=self.sequence,
            rows=self._views.rows,
            same=same,
            has_tenants=self.base.manifest.has_tenants,
        )

    def find_unchanged(self, puts: Sequence[PassageDigest]) -> list[Written | None]:
        """Returns the outcome of each put that would change nothing now; None for others."""
        return find_unchanged_puts(
            puts,
            self.stored_versions({put.id for put in puts}),
            lambda row: self.view.load(row).passage,
            lambda outcome: Written(outcome, self.sequence, self.view.log_id),
        )

    def stored_versions(self, identifiers: set[str]) -> dict[str, StoredVersion | None]:
        """Returns the stored version of each id; None for an id without passage and tombstone."""
        versions = {each: self._unmerged.get(each) for each in identifiers}
        unwritten = [each for each, version in versions.items() if version is None]
        return versions | dict(zip(unwritten, self._base_versions(unwritten), strict=True))

    def apply(self, writes: Sequence[LoggedWrite]) -> None:
        """Applies the next writes of the log; skips those that were applied or are in the base.

        Raises:
            ArtefactError: an earlier write is missing, or a write removes a passage that does not
                exist.

        """
        new = [write for write in writes if write.sequence > self.sequence]
        if not new:
            return
        if new[0].sequence != self.sequence + 1:
            raise ArtefactError(
                f"the log of shard {self.base.manifest.shard} continues with write "
                f"{new[0].sequence}, but its base ends with {self.sequence}: copy the shard again"
            )
        dead: list[int] = []
        row = self._views.rows
        for write in new:
            if write.removed_words is not None:
                dead.append(self._row_of(write))
            if write.put is None:
                self._unmerged[write.id] = StoredVersion(write.version, None, write.sequence)
                self.has_deleted_tenant |= is_whole_tenant(write.id)
            else:
                self._unmerged[write.id] = StoredVersion(write.version, row, write.sequence)
                row += 1
        self._views.apply(new, dead)
        self.sequence = new[-1].sequence
        self._views.set_position(self.sequence, self._log_id)

    def _versions_of_tenant(self, prefix: str) -> dict[str, StoredVersion]:
        """Returns the stored version of each id that begins with `prefix`, deletions included."""
        store = self.base.store
        versions = {
            each: StoredVersion(version, None)
            for each, version in store.deletions_with_prefix(prefix)
        }
        for each, entry in store.locate_prefix(prefix):
            versions[each] = StoredVersion(entry.version, entry.row, entry.sequence)
        unmerged = self._unmerged.items()
        return versions | {each: version for each, version in unmerged if each.startswith(prefix)}

    def _load_passage(self, row: int) -> PassageAndWords:
        stored = self.view.load(row)
        return stored.passage, pack_ids((*stored.title_ids, *stored.tokens.ids))

    def _row_of(self, write: LoggedWrite) -> int:
        """Returns the row of the passage that a write replaces or deletes."""
        stored = self.stored_versions({write.id})[write.id]
        if stored is None or stored.row is None:
            raise ArtefactError(
                f"write {write.sequence} removes a passage that shard {self.base.manifest.shard} "
                "does not have: base and log do not belong together; copy the shard again"
            )
        return stored.row

    def _base_versions(self, identifiers: Sequence[str]) -> Iterator[StoredVersion | None]:
        store = self.base.store
        for identifier, entry in zip(identifiers, store.locate_all(identifiers), strict=True):
            if entry is not None:
                yield StoredVersion(entry.version, entry.row, entry.sequence)
            else:
                version = store.deletion_version(identifier)
                yield None if version is None else StoredVersion(version, None)
