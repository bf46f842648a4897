"""Heads that are run where a text is encoded."""

import threading
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from scripted_store import ScriptedStore, label_of
from small_heads import FINGERPRINT, WIDTH
from tenacious import LONG, happens, turn

from winnow.deadline import Deadline
from winnow.domain.prediction import SequencePrediction
from winnow.heads.heads import States
from winnow.heads.local import LocalHeads
from winnow.heads.metrics import HeadCacheMetrics
from winnow.inference.fair_threads import FairThreads
from winnow.text.encoder import TextEncoding

STATES: States = np.ones((4, WIDTH), np.float16)
ENCODED = TextEncoding(np.ones(2, np.float32), STATES)


class LoadedHeads:
    """Warm heads with room for all."""

    def __init__(self, root: Path) -> None:
        self.store, self.registry = ScriptedStore(root), CollectorRegistry()
        self.threads = FairThreads(1, "heads")
        metrics = HeadCacheMetrics(self.registry).group("test")
        self.heads = LocalHeads(
            self.store,
            fingerprint=FINGERPRINT,
            width=WIDTH,
            budget_bytes=1 << 26,
            threads=self.threads,
            metrics=metrics,
        )

    async def load(self, *heads: str) -> None:
        for head in heads:
            self.store.add(head)
        found = await self.heads.apply(STATES, heads, Deadline.after(LONG))
        assert not [each.failure for each in found if each.failure]

    def in_use(self) -> set[str]:
        return {head for head in "ab" if self.heads._cache.is_held(head)}


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[LoadedHeads]:
    made = LoadedHeads(tmp_path)
    yield made
    made.heads.close()
    made.threads.close()
    await turn()


async def test_heads_in_memory_run_in_the_thread_that_encodes(group: LoadedHeads) -> None:
    await group.load("a", "b")
    with group.heads.begin_encoder_thread_run(["b", "a"], Deadline.after(LONG)) as ahead:
        encoding = threading.Thread(target=ahead.run, args=(ENCODED,))
        encoding.start()
        encoding.join()
        done = ahead.applied()
    assert [(each.head, each.version, each.failure) for each in done] == [
        ("b", 1, None),
        ("a", 1, None),
    ]
    said = done[0].prediction
    assert isinstance(said, SequencePrediction)
    assert said.labels[0].label == label_of(1)
    assert ahead.seconds > 0
    await happens(lambda: group.in_use() == set())


async def test_heads_that_are_not_in_memory_are_left_to_others(group: LoadedHeads) -> None:
    await group.load("a")
    group.store.add("b")
    with group.heads.begin_encoder_thread_run(["b", "a"], Deadline.after(LONG)) as ahead:
        ahead.run(ENCODED)
        assert [each.head for each in ahead.applied()] == ["a"]


async def test_a_turn_of_the_encoder_has_few_heads(group: LoadedHeads) -> None:
    heads = [f"head-{number}" for number in range(20)]
    await group.load(*heads)
    with group.heads.begin_encoder_thread_run(heads, Deadline.after(LONG)) as ahead:
        ahead.run(ENCODED)
        assert [each.head for each in ahead.applied()] == heads[:16]


async def test_a_text_that_is_encoded_elsewhere_leaves_heads_to_others(group: LoadedHeads) -> None:
    """It was in the cache, or on its way for somebody else."""
    await group.load("a")
    with group.heads.begin_encoder_thread_run(["a"], Deadline.after(LONG)) as ahead:
        assert group.in_use() == {"a"}
        assert ahead.applied() == []
    await happens(lambda: group.in_use() == set())


async def test_heads_are_not_run_for_callers_that_gave_up(group: LoadedHeads) -> None:
    await group.load("a")
    with (
        pytest.raises(KeyError),
        group.heads.begin_encoder_thread_run(["a"], Deadline.after(LONG)) as ahead,
    ):
        raise KeyError("cancelled, say")
    ahead.run(ENCODED)
    assert ahead.applied() == []
    await happens(lambda: group.in_use() == set())


async def test_heads_are_not_run_beyond_their_deadline(group: LoadedHeads) -> None:
    await group.load("a")
    with group.heads.begin_encoder_thread_run(["a"], Deadline.after(0)) as ahead:
        ahead.run(ENCODED)
        assert ahead.applied() == []


async def test_an_encoder_without_states_runs_no_heads(group: LoadedHeads) -> None:
    await group.load("a")
    with group.heads.begin_encoder_thread_run(["a"], Deadline.after(LONG)) as ahead:
        ahead.run(TextEncoding(np.ones(2, np.float32)))
        assert ahead.applied() == []
