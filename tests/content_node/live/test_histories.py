"""Any history of a shard: what it answers is what exact search over a plain dictionary finds."""

import asyncio
import contextlib
import shutil
import tempfile
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from conftest import Recorder
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from live_writes import DIMENSION, delete, encoded, put
from prometheus_client import CollectorRegistry
from unpacked import title_ids, tokens
from unpacked import vector as vector_of

from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard import ShardView, StoredSegment, open_shard
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.snapshots.restoring import restore_snapshot
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import shard_name
from winnow.domain.write import EncodedPassage, Outcome, Write
from winnow.passages.encoding import pack

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "shard-format-3"
LIMITS = WriteLimits(shard=0, shards=1, dimension=DIMENSION, vocabulary=1_000, max_unmerged=10_000)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
IDS = st.sampled_from([*"abcdefgh"])
TEXTS = st.sampled_from(["one", "one two", "two two three", "four", "five six"])
VERSIONS = st.one_of(st.none(), st.integers(0, 4))
WRITES = st.one_of(
    st.builds(put, IDS, TEXTS, VERSIONS),
    st.builds(delete, IDS, VERSIONS),
)
BATCHES = st.lists(st.lists(WRITES, min_size=1, max_size=4), min_size=1, max_size=4)


class Model:
    """What a shard should hold: said in the plainest way."""

    def __init__(self, base: StoredSegment) -> None:
        self.there: dict[str, tuple[int, EncodedPassage]] = {}
        """The write that put it, and what it put."""
        self.versions: dict[str, int] = {}
        """The versions of passages, and of deletions that had one."""
        self.sequence = 0
        vectors = base.store.vectors(DIMENSION)
        for row in range(base.rows):
            own = base.load(row)
            passage = pack(own.passage, own.title_ids, own.tokens, vectors[row])
            self.there[own.passage.id] = (0, passage)

    def write(self, write: Write) -> Outcome:
        stored, name = self.versions.get(write.id), write.id
        if write.version is not None and stored is not None and stored > write.version:
            return Outcome.OUTDATED
        if self._changes_nothing(write):
            return Outcome.UNCHANGED
        self.sequence += 1
        self.there.pop(name, None)
        self.versions.pop(name, None)
        deleted = write.put is None and write.version is None
        version = stored if deleted else write.version
        if version is not None:
            self.versions[name] = version
        if write.put is not None:
            self.there[name] = (self.sequence, write.put)
        return Outcome.STORED

    def _changes_nothing(self, write: Write) -> bool:
        known = write.version in (None, self.versions.get(write.id))
        there = self.there.get(write.id)
        if write.put is None:
            return there is None and known
        return there is not None and known and there[1].passage == write.put.passage

    def nearest(self, vector: np.ndarray) -> list[tuple[str, int]]:
        def distance(name: str) -> tuple[float, str]:
            gap = vector_of(self.there[name][1]).astype(np.float64) - vector
            return round(float(gap @ gap), 5), name

        return [(name, self.there[name][0]) for name in sorted(self.there, key=distance)]

    def counts(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for _, passage in self.there.values():
            for token in {*title_ids(passage), *tokens(passage).ids}:
                found[token] = found.get(token, 0) + 1
        return found


class Histories(RuleBasedStateMachine):
    """Writes, merges, restarts, snapshots, restores and questions in any order."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.aside = tempfile.TemporaryDirectory()
        self.directory = Path(shutil.copytree(GOLDEN, Path(self.aside.name) / "shard"))
        self.live = self.open()
        self.model = Model(self.live.base)
        self.built = self.model.counts()
        self.held: list[tuple[ShardView, list[tuple[str, int]]]] = []
        self.copied: list[Model] = []
        """What the shard held when each snapshot was taken."""

    def open(self) -> LiveShard:
        def base(trimmed: int) -> StoredSegment:
            return open_newest(
                self.directory, trimmed, lambda path: open_shard(path, ef=64), feeding=True
            )

        metrics = WriteMetrics(CollectorRegistry())
        return open_live(self.directory, base, lambda _: LIMITS, metrics, feeding=True)

    @rule(calls=BATCHES)
    def write(self, calls: list[list[Write]]) -> None:
        async def all_at_once() -> list[list[tuple[Outcome, int]]]:
            deadline = Deadline.after(60)
            found = await asyncio.gather(*(self.live.write(own, deadline) for own in calls))
            return [[(each.outcome, each.sequence) for each in own] for own in found]

        expected = [[(self.model.write(w), self.model.sequence) for w in own] for own in calls]
        assert self.loop.run_until_complete(all_at_once()) == expected

    @rule()
    def open_again(self) -> None:
        self.loop.run_until_complete(self.live.close())
        self.held = []
        self.live = self.open()

    @rule()
    def take_a_snapshot(self) -> None:
        moment = NOON + timedelta(seconds=len(self.copied))
        url = f"{self.aside.name}/snapshots"
        taken = take_snapshot(self.directory, url, Recorder(), lambda: moment)
        assert taken.parts[0].sequence == self.model.sequence
        self.copied.append(deepcopy(self.model))

    @precondition(lambda self: self.copied)
    @rule()
    def restore_the_newest_snapshot(self) -> None:
        self.loop.run_until_complete(self.live.close())
        shutil.rmtree(self.directory)
        restore_snapshot(
            f"{self.aside.name}/snapshots/{shard_name(0, 1)}", self.directory, Recorder()
        )
        self.held = []
        self.live = self.open()
        self.model = deepcopy(self.copied[-1])

    @precondition(lambda self: self.live.sequence > self.live.merged)
    @rule(late=st.lists(WRITES, max_size=3), trims=st.booleans())
    def merge(self, late: list[Write], trims: bool) -> None:
        made = merge(self.live.directory, self.directory, self.live.sequence)
        if late:
            self.write([late])
        base = open_shard(Path(made.directory), ef=64)
        self.loop.run_until_complete(self.live.swap(base))
        if trims:
            self.loop.run_until_complete(self.live.trim(self.live.sequence))

    @rule(name=IDS, text=TEXTS)
    def ask(self, name: str, text: str) -> None:
        vector = vector_of(encoded(name, text))
        assert self.nearest(self.live.view, vector) == self.model.nearest(vector)
        self.held.append((self.live.view, self.model.nearest(vector)))

    @rule(text=TEXTS)
    def ask_what_was_asked_before(self, text: str) -> None:
        """A view shows nothing that came later."""
        with contextlib.suppress(IndexError):
            view, _ = self.held[0]
            names = {name for name, _ in self.nearest(view, vector_of(encoded("", text)))}
            assert names == {name for name, _ in self.held[0][1]}

    @invariant()
    def holds_what_it_should(self) -> None:
        view = self.live.view
        assert view.sequence == self.model.sequence
        assert view.passages == len(self.model.there)
        changes = self.loop.run_until_complete(self.live.changes(Deadline.after(60)))
        counted = dict(zip(changes.ids.tolist(), changes.by.tolist(), strict=True))
        now = self.model.counts()
        tokens = {*now, *self.built}
        expected = {token: now.get(token, 0) - self.built.get(token, 0) for token in tokens}
        assert counted == {token: by for token, by in expected.items() if by}

    def nearest(self, view: ShardView, vector: np.ndarray) -> list[tuple[str, int]]:
        """All passages, nearest first; those as far away as each other by their names."""
        question = EncodedQuestion(
            text="", token_ids=(1,), vector=vector.astype(np.float32), bundle_fingerprint=""
        )
        found = retrieve(view, question, RetrievalDepth(passages=100), 0.0).hits
        near = sorted(found, key=lambda hit: (round(hit.distance, 5), hit.passage_id))
        for hit in near:
            assert view.load(hit.row).passage.id == hit.passage_id
        return [(hit.passage_id, hit.sequence) for hit in near]

    def teardown(self) -> None:
        if hasattr(self, "live"):
            self.loop.run_until_complete(self.live.close())
            self.loop.close()
            self.aside.cleanup()


Histories.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestHistories = Histories.TestCase
