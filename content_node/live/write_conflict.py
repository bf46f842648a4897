"""Which of two writes of one id counts: the stored one, or the one that comes.

Writes are decided in their order, each by what is stored when its turn comes. Nothing is changed
here: decided writes are made durable first, and shown then.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from winnow.content_node.live.entry import Logged
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage, Outcome, Write, Written
from winnow.passages.canonical import PassageDigest, digest, same_content

Same = Callable[[Passage, Passage], bool]
"""Whether two passages are the same."""
StoredWords = tuple[Passage, bytes]
"""A passage and its words, packed."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """The passage that is stored under an id, or its deletion."""

    version: int | None
    """The version of the write that stored it; None if that had none."""
    row: int | None
    """The row of the passage in the newest view; None if it was deleted."""
    sequence: int = 0
    """The number of that write; 0 if the passage was there when the index was built."""


def outcome_of_put(known: StoredVersion | None, version: int | None, same: bool) -> Outcome:
    """The outcome of a put; `same` if its passage is the stored one."""
    if known is None:
        return Outcome.STORED
    if _later(known.version, version):
        return Outcome.OUTDATED
    # a new version is stored even where the passage is the same
    unchanged = same and version in (None, known.version)
    return Outcome.UNCHANGED if unchanged else Outcome.STORED


def outcome_of_deletion(known: StoredVersion | None, version: int | None) -> Outcome:
    """The outcome of a deletion. One with a version is stored even where there is no passage, so
    that an older put that comes late does not count.
    """
    if known is None:
        return Outcome.UNCHANGED if version is None else Outcome.STORED
    if _later(known.version, version):
        return Outcome.OUTDATED
    unchanged = known.row is None and version in (None, known.version)
    return Outcome.UNCHANGED if unchanged else Outcome.STORED


def unchanged_puts(
    puts: Iterable[PassageDigest],
    known: Mapping[str, StoredVersion | None],
    load: Callable[[int], Passage],
    written: Callable[[Outcome], Written],
) -> list[Written | None]:
    """For each put the outcome if it changes nothing, and None if it would be stored.

    Digests of stored passages are computed here: a base of any format has what that takes.

    Args:
        puts: passages without their texts.
        known: what is stored under each of their ids.
        load: the passage of a row.
        written: the outcome with the present position of the log.

    """
    found: list[Written | None] = []
    for put in puts:
        before = known[put.id]
        row = None if before is None else before.row
        same = row is not None and digest(load(row)) == put.digest
        outcome = outcome_of_put(before, put.version, same)
        found.append(None if outcome is Outcome.STORED else written(outcome))
    return found


class WriteConflict:
    """Decides the writes of one transaction."""

    def __init__(
        self,
        *,
        known: Callable[[str], StoredVersion | None],
        load: Callable[[int], StoredWords],
        sequence: int,
        rows: int,
        same: Same = same_content,
    ) -> None:
        """Has decided nothing yet.

        Args:
            known: what is stored under an id.
            load: the passage of a row, with its words.
            sequence: the number of the last write.
            rows: the row of the next passage.
            same: whether two passages are the same.

        """
        self._known, self._load, self._same = known, load, same
        self._changed: dict[str, StoredVersion] = {}
        self._sequence, self._rows = sequence, rows
        self.logged: list[Logged] = []
        """The writes that are to be stored."""
        self._puts: list[EncodedPassage] = []

    def decide(self, write: Write) -> Written:
        """The outcome of the next write."""
        known = self._changed.get(write.id) or self._known(write.id)
        before = None if known is None or known.row is None else self._stored(known.row)
        if write.put is None:
            outcome = outcome_of_deletion(known, write.version)
        else:
            same = before is not None and self._same(before[0], write.put.passage)
            outcome = outcome_of_put(known, write.version, same)
        if outcome is Outcome.STORED:
            self._store(write, _version(write, known), None if before is None else before[1])
        return Written(outcome, self._sequence)

    def _store(self, write: Write, version: int | None, removed: bytes | None) -> None:
        self._sequence += 1
        row = None
        if write.put is not None:
            row = self._rows + len(self._puts)
            self._puts.append(write.put)
        self.logged.append(
            Logged(
                sequence=self._sequence,
                id=write.id,
                version=version,
                put=write.put,
                removed=removed,
            )
        )
        self._changed[write.id] = StoredVersion(version, row, self._sequence)

    def _stored(self, row: int) -> StoredWords:
        if row < self._rows:
            return self._load(row)
        put = self._puts[row - self._rows]
        return put.passage, put.words


def _later(stored: int | None, version: int | None) -> bool:
    return stored is not None and version is not None and stored > version


def _version(write: Write, known: StoredVersion | None) -> int | None:
    """The version that is stored. A deletion without a version keeps that of the passage, so that
    an older put does not bring it back.
    """
    if known is None or write.put is not None or write.version is not None:
        return write.version
    return known.version
