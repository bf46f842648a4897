"""What becomes of writes, in their order: each by what is stored when its turn comes.

Changes nothing: what it decided is stored first, and shown then.
"""

from collections.abc import Callable

import numpy as np

from winnow.content_node.live.entry import Logged, packed
from winnow.content_node.live.versions import StoredVersion, outcome_of_deletion, outcome_of_put
from winnow.content_node.shard.store import StoredPassage
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage, Outcome, Write, Written
from winnow.passages.canonical import same_content

Same = Callable[[Passage, Passage], bool]


class WriteConflict:
    """The writes of one transaction."""

    def __init__(
        self,
        known: Callable[[str], StoredVersion | None],
        load: Callable[[int], StoredPassage],
        sequence: int,
        rows: int,
        same: Same = same_content,
    ) -> None:
        """`known` is what is stored under an id, `load` a passage by its row. The last write was
        `sequence`, and the next passage gets row `rows`. `same` says whether two passages are one.
        """
        self._known, self._load, self._same = known, load, same
        self._changed: dict[str, StoredVersion] = {}
        self._sequence, self._rows = sequence, rows
        self.logged: list[Logged] = []
        """What is to be stored."""
        self._puts: list[EncodedPassage] = []

    def decide(self, write: Write) -> Written:
        """What becomes of the next write."""
        known = self._changed.get(write.id) or self._known(write.id)
        before = None if known is None or known.row is None else self._passage(known.row)
        outcome = self._outcome(write, known, before)
        if outcome is Outcome.STORED:
            self._store(write, _version(write, known), before)
        return Written(outcome, self._sequence)

    def _outcome(
        self, write: Write, known: StoredVersion | None, before: StoredPassage | None
    ) -> Outcome:
        if write.put is None:
            return outcome_of_deletion(known, write.version)
        same = before is not None and self._same(before.passage, write.put.passage)
        return outcome_of_put(known, write.version, same)

    def _store(self, write: Write, version: int | None, before: StoredPassage | None) -> None:
        self._sequence += 1
        row = None
        put = None
        if write.put is not None:
            row, put = self._rows + len(self._puts), packed(write.put)
            self._puts.append(write.put)
        removed = None if before is None else _words(before)
        self.logged.append(Logged(self._sequence, write.id, version, put, removed))
        self._changed[write.id] = StoredVersion(version, row, self._sequence)

    def _passage(self, row: int) -> StoredPassage:
        if row < self._rows:
            return self._load(row)
        put = self._puts[row - self._rows]
        return StoredPassage(put.passage, put.title_ids, put.tokens)


def _version(write: Write, known: StoredVersion | None) -> int | None:
    """What is stored of a write: a deletion without a version has that of the passage, so that an
    older put does not bring it back.
    """
    if known is None or write.put is not None or write.version is not None:
        return write.version
    return known.version


def _words(passage: StoredPassage) -> bytes:
    return np.array((*passage.title_ids, *passage.tokens.ids), "<u4").tobytes()
