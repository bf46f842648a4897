"""A shard's log of writes, and fake replicas that follow it as far as a test lets them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from fake_passages import FakePassages
from fakes import FINGERPRINT

from winnow.content_node.indexing.counting import count_words
from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit, Passage
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.reading import Reading
from winnow.domain.shard import ShardInfo
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.errors import DeadlineExceededError, GenerationGoneError, WinnowError
from winnow.searcher import Read, Retrieved

Words = tuple[int, ...]
Content = Mapping[str, Words]


@dataclass(frozen=True, slots=True)
class Entry:
    """A put or deletion in a log, or a passage of the built index."""

    id: str
    sequence: int
    words: Words | None

    @property
    def distance(self) -> float:
        """Distance to every question; it follows from the words."""
        return sum(self.words or ()) * 37 % 101 / 100

    def reading(self) -> Reading:
        """Returns a reading whose answer is the first word."""
        text = " ".join(map(str, self.words or ()))
        end = len(text.partition(" ")[0])
        passage, far = Passage(self.id, "", text), self.distance
        return Reading(
            passage=passage,
            start=0,
            end=end,
            score=-far,
            relevance=-far,
            span_score=1.0,
            distance=far,
            hybrid_distance=far,
        )


def counted(content: Content) -> WordCounts:
    """Returns the word counts of an index with this content."""
    return count_words(np.array(words, np.uint32) for words in content.values())


class ShardLog:
    """All writes to one shard."""

    def __init__(self, content: Content, log_id: str = "log") -> None:
        self.log_id = log_id
        self.built = {name: Entry(name, 0, words) for name, words in content.items()}
        self.entries: list[Entry] = []

    @property
    def sequence(self) -> int:
        return len(self.entries)

    def put(self, name: str, words: Words) -> int:
        """Writes a passage unless it is unchanged; returns the log's last sequence number."""
        now = self.content(self.sequence).get(name)
        if now is None or now.words != words:
            self.entries.append(Entry(name, self.sequence + 1, words))
        return self.sequence

    def delete(self, name: str) -> int:
        """Deletes a passage; returns the log's last sequence number."""
        if name in self.content(self.sequence):
            self.entries.append(Entry(name, self.sequence + 1, None))
        return self.sequence

    def content(self, sequence: int) -> dict[str, Entry]:
        """Returns the passages after the write with this sequence number."""
        held = dict(self.built)
        for entry in self.entries[:sequence]:
            if entry.words is None:
                held.pop(entry.id, None)
            else:
                held[entry.id] = entry
        return held


@dataclass
class LiveReplica:
    """A fake replica of a log; implements `Searcher` and `WordSource`."""

    name: str
    log: ShardLog
    shard: int = 0
    shards: int = 1
    index: WordCounts = field(default_factory=lambda: counted({}))
    """Word counts of the whole built index."""
    sequence: int = 0
    """Last write that it has applied."""
    merged: int = 0
    """Last write in its base."""
    fails: WinnowError | None = None
    before_reading: list[Callable[[], None]] = field(default_factory=list)
    """Called, once each, before passages are read."""
    asked: list[EncodedQuestion] = field(default_factory=list)
    counts: int = 0
    """Number of calls of `changes`."""
    left: float = 0.0
    """Seconds left until the deadline of the last retrieval."""
    hangs: asyncio.Event | None = None
    """If set to an event, retrieval waits for it."""
    names_log: bool = True
    """Whether replies have the log's id; those of earlier versions do not."""
    tenants: bool = False
    """Whether the index has tenants."""
    passages: FakePassages = field(default_factory=FakePassages)

    def follow(self, sequence: int | None = None) -> None:
        """Applies the log up to a write, or all of it."""
        most = self.log.sequence if sequence is None else min(sequence, self.log.sequence)
        self.sequence = max(self.sequence, most)

    def merge(self) -> None:
        """Merges all writes into a new base, with other rows."""
        self.merged = self.sequence

    @property
    def generation(self) -> str:
        """Name of the generation; unique to this replica, as replicas merge at different times."""
        return f"{self.name}-{self.merged}"

    @property
    def said(self) -> ShardInfo:
        """The replica's info."""
        return ShardInfo(
            shard=self.shard,
            shards=self.shards,
            index_id="index",
            passages=len(self.log.content(self.sequence)),
            dimension=2,
            bundle_name="fake",
            bundle_fingerprint=FINGERPRINT,
            generation=self.generation,
            index_passages=self.index.total,
            sequence=self.sequence,
            log_id=self.log.log_id,
            tenants=self.tenants,
        )

    async def info(self, deadline: Deadline) -> ShardInfo:
        await self._behave()
        return self.said

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        self.asked.append(question)
        self.left = deadline.left()
        await self._behave()
        if self.hangs is not None:
            await self.hangs.wait()
        if depth.after > self.sequence:
            raise DeadlineExceededError(f"{self.name} has write {self.sequence}")
        held = self.log.content(self.sequence).values()
        near = sorted(held, key=lambda entry: (entry.distance, entry.id))
        rows = {entry: row for row, entry in enumerate(self._rows())}
        hits = tuple(self._hit(rows[entry], entry) for entry in near[: depth.passages])
        distances = tuple(entry.distance for entry in near[: depth.nearest_candidates])
        log_id = self.log.log_id if self.names_log else ""
        return Retrieved(hits, distances, ShardTimings(), sequence=self.sequence, log_id=log_id)

    async def read(
        self, question: EncodedQuestion, hits: Sequence[Hit], deadline: Deadline
    ) -> Read:
        await self._behave()
        while self.before_reading:
            self.before_reading.pop()()
        return Read(tuple(self._found(hit).reading() for hit in hits), ShardTimings())

    async def search(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Read:
        found = await self.retrieve(question, depth, deadline)
        read = await self.read(question, found.hits, deadline)
        timings, sequence = read.timings, found.sequence
        return Read(read.readings, timings, sequence=sequence, log_id=found.log_id)

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        await self._behave()
        return self.index

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Returns the changes of word counts, counted write by write as a node does."""
        self.counts += 1
        await self._behave()
        held, by = dict(self.log.built), np.zeros(64, np.int32)
        tokens = 0
        for entry in self.log.entries[: self.sequence]:
            old = held.pop(entry.id, None)
            for words, sign in ((old.words if old else None, -1), (entry.words, 1)):
                by[list(set(words or ()))] += sign
                tokens += sign * len(words or ())
            if entry.words is not None:
                held[entry.id] = entry
        ids = np.flatnonzero(by).astype(np.uint32)
        more = len(held) - len(self.log.built)
        return WordChanges(
            sequence=self.sequence, ids=ids, by=by[ids], passages=more, tokens=tokens
        )

    def _rows(self) -> list[Entry]:
        base = sorted(self.log.content(self.merged).values(), key=lambda entry: entry.id)
        since = self.log.entries[self.merged : self.sequence]
        return base + [entry for entry in since if entry.words is not None]

    def _hit(self, row: int, entry: Entry) -> Hit:
        far = entry.distance
        return Hit(
            row=row,
            passage_id=entry.id,
            distance=far,
            hybrid_distance=far,
            generation=self.generation,
            words=0.0,
            sequence=entry.sequence,
        )

    def _found(self, hit: Hit) -> Entry:
        rows = self._rows()
        if hit.generation == self.generation:
            return rows[hit.row]
        for entry in rows:
            if (entry.id, entry.sequence) == (hit.passage_id, hit.sequence):
                return entry
        raise GenerationGoneError(f"{self.name} holds no {hit.passage_id} of {hit.sequence}")

    async def _behave(self) -> None:
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
