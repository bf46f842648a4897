"""After any operations on a store, in any order, heads predict as one of their versions does.

A prediction is always that of one version that was served at some time, and of nothing else; a head
in memory never fails; one that is not there fails only for a reason that can be named.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from scripted_store import ScriptedStore, label_of, versioned_head
from small_heads import FINGERPRINT, WIDTH
from structlog.testing import capture_logs
from tenacious import LONG

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, SequencePrediction
from winnow.errors import ArtefactError, NotFoundError, OverloadedError, UnavailableError
from winnow.heads.artefact import load_head
from winnow.heads.head import estimate_memory
from winnow.heads.local import LocalHeads
from winnow.heads.metrics import HeadCacheMetrics
from winnow.heads.refresh import REFRESH_SECONDS
from winnow.inference.fair_threads import FairThreads

HEADS = ("a", "b", "c")
ROOM = 2
"""Heads that fit into memory."""
ids = st.sampled_from(HEADS)


class Sequences(RuleBasedStateMachine):
    """A store, what is in memory of it, and what may be said."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")  # what is written to a disk there is synced in no time
        self.place = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.runner = asyncio.Runner()
        root = Path(self.place.name)
        self.store, self.clock = ScriptedStore(root), ManualClock()
        one = estimate_memory(load_head(versioned_head(root / "one", "a", 1)).manifest)
        self.threads = FairThreads(1, "heads")
        self.registry = CollectorRegistry()
        self.heads = LocalHeads(
            self.store,
            fingerprint=FINGERPRINT,
            width=WIDTH,
            budget_bytes=int(one * (ROOM + 0.5)),
            threads=self.threads,
            metrics=HeadCacheMetrics(self.registry).group("test"),
            clock=self.clock,
        )
        self.served: dict[str, set[int]] = {head: set() for head in HEADS}
        self.published: dict[str, int] = dict.fromkeys(HEADS, 0)
        self.damaged: set[tuple[str, int]] = set()
        self.failed_at: dict[str, float] = {}

    def teardown(self) -> None:
        with capture_logs():
            self.heads.close()
            self.threads.close()
            self.runner.close()
        self.place.cleanup()

    @initialize()
    def begin(self) -> None:
        for head in HEADS:
            self.publish(head)

    @rule(head=ids)
    def publish(self, head: str) -> None:
        self.published[head] += 1
        version = self.published[head]
        current = self.store.add(head, version)
        assert current.version == version
        self.served[head].add(version)

    @rule(head=ids)
    def publish_a_broken_one(self, head: str) -> None:
        self.publish(head)
        self.damage(head, self.published[head])

    @rule(head=ids, settles=st.booleans())
    def predict_one(self, head: str, settles: bool) -> None:
        self.predict([head], settles)

    @rule(head=ids)
    def forget(self, head: str) -> None:
        """The others come into memory, where there is room for them only."""
        for each in HEADS:
            if each != head:
                self.predict([each], False)

    @rule(head=ids, data=st.data())
    def damage_any(self, head: str, data: st.DataObject) -> None:
        if self.published[head]:
            self.damage(head, data.draw(st.integers(1, self.published[head])))

    @rule(head=ids, data=st.data())
    def mend(self, head: str, data: st.DataObject) -> None:
        broken = sorted(version for name, version in self.damaged if name == head)
        if broken:
            version = data.draw(st.sampled_from(broken))
            self.store.add(head, version)
            self.damaged.discard((head, version))
            self.served[head].add(version)

    @rule(head=ids)
    def roll_back(self, head: str) -> None:
        try:
            current = self.store.rollback(head)
        except (NotFoundError, ArtefactError):
            return
        assert (head, current.version) not in self.damaged
        self.served[head].add(current.version)

    @rule(head=ids, pinned=st.booleans())
    def pin(self, head: str, pinned: bool) -> None:
        if self.published[head]:
            self.store.pin(head, pinned)

    @rule(away=st.booleans())
    def come_and_go(self, away: bool) -> None:
        self.store.away = away

    @rule(seconds=st.sampled_from([0.1, REFRESH_SECONDS, 100.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(asked=st.lists(ids, min_size=1, max_size=3, unique=True), settles=st.booleans())
    def predict(self, asked: list[str], settles: bool) -> None:
        before = {head.head_id for head in self.heads.cached()}
        with capture_logs():
            for each in self.runner.run(self.apply(asked, settles)):
                self.judge(each, each.head in before)

    @precondition(lambda self: not self.store.away)
    @rule(head=ids)
    def catches_up(self, head: str) -> None:
        """Once all is well, the version to serve is served."""
        current = self.read_record(head)
        if current is None or (head, current.version) in self.damaged:
            return
        with capture_logs():
            for _ in range(2):
                self.clock.advance(100.0)
                (applied,) = self.runner.run(self.apply([head], True))
            if isinstance(applied.failure, OverloadedError):
                return  # the others are pinned
            (applied,) = self.runner.run(self.apply([head], True))
        assert applied.version == current.version

    @invariant()
    def keeps_its_budget(self) -> None:
        warm = self.heads.cached()
        assert len(warm) <= ROOM
        taken = self.registry.get_sample_value("winnow_heads_memory_bytes", {"ring": "test"})
        assert taken == sum(head.bytes for head in warm)

    async def apply(self, heads: list[str], settles: bool) -> list[Applied]:
        states = np.ones((3, WIDTH), np.float16)
        found = await self.heads.apply(states, heads, Deadline.after(LONG))
        if settles:
            looks = [slot.check_task for slot in self.heads._cache.slots() if slot.check_task]
            if looks:
                await asyncio.wait(looks)
        return found

    def judge(self, applied: Applied, was_warm: bool) -> None:
        head = applied.head
        if applied.failure is None:
            assert isinstance(applied.prediction, SequencePrediction)
            assert applied.prediction.labels[0].label == label_of(applied.version)
            assert applied.version in self.served[head]
            return
        assert not was_warm, applied.failure
        assert applied.version == 0
        assert self.is_reason(head, applied.failure), applied.failure
        self.failed_at.setdefault(head, self.clock.now)
        if self.clock.now >= self.failed_at[head] + REFRESH_SECONDS:
            self.failed_at[head] = self.clock.now

    def is_reason(self, head: str, failure: Exception) -> bool:
        if isinstance(failure, OverloadedError):
            return True  # the others are in use or pinned
        if self.failed_at.get(head, -1e9) + REFRESH_SECONDS > self.clock.now:
            return True  # what went wrong just now is remembered
        if isinstance(failure, NotFoundError):
            return not self.published[head]
        assert isinstance(failure, UnavailableError)
        current = self.read_record(head)
        if self.store.away or current is None:
            return True
        versions = [each for each in (current.version, current.previous) if each]
        return all((head, version) in self.damaged for version in versions)

    def read_record(self, head: str) -> Any:
        return self.store.inner.read_record(head) if self.published[head] else None

    def damage(self, head: str, version: int) -> None:
        self.store.damage(head, version)
        self.damaged.add((head, version))


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
