"""Decides which of two writes of one id counts: the stored one, or the new one.

Writes are decided in their order, each against the version that is stored before it. This module
stores nothing: the caller makes the decided writes durable, and then visible.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from winnow.content_node.live.log_entry import LoggedWrite
from winnow.domain.passage import Passage
from winnow.domain.quota import TenantUsage
from winnow.domain.tenant import (
    id_of_no_passage,
    is_whole_tenant,
    prefix_of,
    tenant_of,
)
from winnow.domain.write import EncodedPassage, Outcome, Write, Written
from winnow.passages.canonical import PassageDigest, digest, same_content

SamePassage = Callable[[Passage, Passage], bool]
"""Returns whether two passages count as the same."""
PassageAndWords = tuple[Passage, bytes]
"""A passage and its packed words."""
Restored = TypeVar("Restored")


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """The latest stored write of an id: a passage, or its deletion."""

    version: int | None
    """The version that the caller gave to the write; None without one."""
    row: int | None
    """The row of the passage in the newest view; None if it was deleted."""
    sequence: int = 0
    """The number of the write; 0 if the passage was in the built index."""


def outcome_of_put(stored: StoredVersion | None, version: int | None, same: bool) -> Outcome:
    """Returns the outcome of a put; `same` if its passage equals the stored one."""
    if stored is None:
        return Outcome.STORED
    if _is_later(stored.version, version):
        return Outcome.OUTDATED
    # a new version is stored even if the passage is the same
    unchanged = same and version in (None, stored.version)
    return Outcome.UNCHANGED if unchanged else Outcome.STORED


def outcome_of_deletion(stored: StoredVersion | None, version: int | None) -> Outcome:
    """Returns the outcome of a deletion.

    A deletion with a version is stored even without a passage, so that it outdates a late put of an
    older version.
    """
    if stored is None:
        return Outcome.UNCHANGED if version is None else Outcome.STORED
    if _is_later(stored.version, version):
        return Outcome.OUTDATED
    unchanged = stored.row is None and version in (None, stored.version)
    return Outcome.UNCHANGED if unchanged else Outcome.STORED


def find_unchanged_puts(
    puts: Iterable[PassageDigest],
    stored_versions: Mapping[str, StoredVersion | None],
    load: Callable[[int], Passage],
    written: Callable[[Outcome], Written],
) -> list[Written | None]:
    """Returns the outcome of each put that would change nothing; None for others.

    Digests of stored passages are computed here, since no base stores them.

    Args:
        puts: digests of the passages.
        stored_versions: the stored version of each of their ids.
        load: returns the passage of a row.
        written: adds the current position of the log to an outcome.

    """
    results: list[Written | None] = []
    for put in puts:
        stored = stored_versions[put.id]
        row = None if stored is None else stored.row
        same = row is not None and digest(load(row)) == put.digest
        outcome = outcome_of_put(stored, put.version, same)
        results.append(None if outcome is Outcome.STORED else written(outcome))
    return results


def with_number(found: Iterable[Written | None], write: Written) -> list[Written | None]:
    """Returns the results of `find_unchanged_puts` with the number and the log of a later write."""
    return [each and replace(write, outcome=each.outcome) for each in found]


class WriteConflict:
    """Decides the writes of one transaction."""

    def __init__(
        self,
        *,
        stored_version: Callable[[str], StoredVersion | None],
        versions_of_tenant: Callable[[str], Mapping[str, StoredVersion]],
        load: Callable[[int], PassageAndWords],
        sequence: int,
        rows: int,
        same: SamePassage = same_content,
        has_tenants: bool = False,
    ) -> None:
        """Starts a transaction after the write `sequence`.

        Args:
            stored_version: returns the stored version of an id.
            versions_of_tenant: returns the stored version of each id with the prefix of a tenant.
            load: returns the passage of a row, with its words.
            sequence: the number of the last stored write.
            rows: the row of the next put passage.
            same: returns whether two passages count as the same.
            has_tenants: whether to count by how much each tenant's passages change.

        """
        self._stored_version, self._load, self._same = stored_version, load, same
        self._versions_of_tenant = versions_of_tenant
        self._new_versions: dict[str, StoredVersion] = {}
        self._sequence, self._rows = sequence, rows
        self.to_log: list[LoggedWrite] = []
        """The decided writes that the caller has to store."""
        self._puts: list[EncodedPassage] = []
        self._has_tenants = has_tenants
        self.changes: dict[str, TenantUsage] = {}
        """By how much the decided writes change what each tenant has stored."""
        self.begin_call()

    def begin_call(self) -> None:
        """Begins the writes of the next call, which `undo_call` can take back."""
        self.change = TenantUsage()
        """By how much the writes of the call change what is stored. Only counted with tenants."""
        self._start = len(self.to_log), len(self._puts), self._sequence
        self._versions_before: list[tuple[str, StoredVersion | None]] = []
        self._changes_before: list[tuple[str, TenantUsage | None]] = []

    def undo_call(self) -> None:
        """Takes back the writes that were decided since `begin_call`, in an index with tenants."""
        writes, puts, self._sequence = self._start
        del self.to_log[writes:], self._puts[puts:]
        _restore(self._new_versions, self._versions_before)
        _restore(self.changes, self._changes_before)
        self.begin_call()

    def decide(self, write: Write) -> Written:
        """Decides the next write; returns its outcome.

        Each write of a tenant gets its own number, even if it changes nothing. Otherwise equal
        numbers would tell the tenant that no other tenant has written meanwhile.
        """
        if is_whole_tenant(write.id):
            return self._delete_tenant(write.id)
        stored = self._new_versions.get(write.id) or self._stored_version(write.id)
        replaced = None if stored is None or stored.row is None else self._passage(stored.row)
        if write.put is None:
            outcome = outcome_of_deletion(stored, write.version)
        else:
            same = replaced is not None and self._same(replaced[0], write.put.passage)
            outcome = outcome_of_put(stored, write.version, same)
        if outcome is Outcome.STORED:
            removed_words = None if replaced is None else replaced[1]
            if self._has_tenants:
                self._count(write, None if replaced is None else replaced[0])
            self._add(write, _version_to_store(write, stored), removed_words)
        elif tenant := tenant_of(write.id):
            self._add_no_op(id_of_no_passage(tenant))
        return Written(outcome, self._sequence)

    def pass_over(self, write: Write) -> Written:
        """Numbers a write to another part of the shard. It changes nothing here."""
        self._add_no_op(write.id)
        return Written(Outcome.UNCHANGED, self._sequence)

    def _add_no_op(self, identifier: str) -> None:
        """Adds a deletion of an id that has no passage here."""
        self._sequence += 1
        self.to_log.append(
            LoggedWrite(
                sequence=self._sequence, id=identifier, version=None, put=None, removed_words=None
            )
        )

    def _delete_tenant(self, mark: str) -> Written:
        """Deletes all passages of a tenant, and forgets the versions of earlier deletions.

        The deletion of `mark`, the id that stands for the tenant, follows these deletions. It
        changes nothing by itself: a merge that finds it leaves nothing of the tenant on the disk.
        It is left out if there was no write for the tenant since the last one, or since the base.
        """
        tenant = tenant_of(mark)
        prefix = prefix_of(tenant)
        stored = dict(self._versions_of_tenant(prefix))
        stored |= {
            each: version for each, version in self._new_versions.items() if each.startswith(prefix)
        }
        stored.pop(id_of_no_passage(tenant), None)
        last = stored.pop(mark, None)
        if not any(last is None or each.sequence > last.sequence for each in stored.values()):
            self._add_no_op(id_of_no_passage(tenant))
            return Written(Outcome.UNCHANGED, self._sequence)
        for each in sorted(stored):
            row, version = stored[each].row, stored[each].version
            if row is not None or version is not None:
                passage, words = (None, None) if row is None else self._passage(row)
                deletion = Write(each)
                self._count(deletion, passage)
                self._add(deletion, None, words)
        self._add(Write(mark), None, None)
        return Written(Outcome.STORED, self._sequence)

    def _add(self, write: Write, version: int | None, removed_words: bytes | None) -> None:
        self._sequence += 1
        row = None
        if write.put is not None:
            row = self._rows + len(self._puts)
            self._puts.append(write.put)
        self.to_log.append(
            LoggedWrite(
                sequence=self._sequence,
                id=write.id,
                version=version,
                put=write.put,
                removed_words=removed_words,
            )
        )
        if self._has_tenants:
            self._versions_before.append((write.id, self._new_versions.get(write.id)))
        self._new_versions[write.id] = StoredVersion(version, row, self._sequence)

    def _count(self, write: Write, replaced: Passage | None) -> None:
        """Counts by how much a write changes what its tenant has stored."""
        added = write.put and write.put.passage
        change = TenantUsage(
            (added is not None) - (replaced is not None),
            (added.content_bytes if added else 0) - (replaced.content_bytes if replaced else 0),
        )
        self.change += change
        tenant = tenant_of(write.id)
        before = self.changes.get(tenant)
        self._changes_before.append((tenant, before))
        self.changes[tenant] = change if before is None else before + change

    def _passage(self, row: int) -> PassageAndWords:
        """Returns the passage of a row, of the view or of this transaction."""
        if row < self._rows:
            return self._load(row)
        put = self._puts[row - self._rows]
        return put.passage, put.words


def _is_later(stored: int | None, version: int | None) -> bool:
    return stored is not None and version is not None and stored > version


def _version_to_store(write: Write, stored: StoredVersion | None) -> int | None:
    """Returns the version under which a write is stored.

    A deletion without a version keeps the version of the passage, so that an older put does not
    bring the passage back.
    """
    if stored is None or write.put is not None or write.version is not None:
        return write.version
    return stored.version


def _restore(values: dict[str, Restored], before: list[tuple[str, Restored | None]]) -> None:
    """Undoes changes of a dict. `before` has the value of each changed key, the latest last."""
    for key, value in reversed(before):
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
