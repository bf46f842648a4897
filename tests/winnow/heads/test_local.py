"""Heads in memory: loaded once, kept under a budget, replaced while they serve."""

import asyncio
import contextlib
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from scripted_store import ScriptedStore, label_of, versioned_head
from small_heads import FINGERPRINT, WIDTH, small_head
from structlog.testing import capture_logs
from tenacious import LONG, growing, happens, turn

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, SequencePrediction, TokenPrediction
from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    IdentityError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
)
from winnow.heads.artefact import load_head
from winnow.heads.head import estimate_memory
from winnow.heads.heads import Heads, States
from winnow.heads.local import LocalHeads
from winnow.heads.metrics import HeadCacheMetrics
from winnow.heads.refresh import REFRESH_SECONDS
from winnow.heads.store import HeadStore, open_store
from winnow.inference.fair_threads import FairThreads

STATES: States = np.ones((4, WIDTH), np.float16)
MEGABYTE = 2**20


class LoadedHeads:
    """Warm heads over a scripted store, on a clock that stands still."""

    def __init__(self, root: Path, budget: int = 64 * MEGABYTE) -> None:
        self.store, self.clock = ScriptedStore(root), ManualClock()
        self.threads = FairThreads(1, "heads")
        self.registry = CollectorRegistry()
        metrics = HeadCacheMetrics(self.registry).group("test")
        self.heads = LocalHeads(
            self.store,
            fingerprint=FINGERPRINT,
            width=WIDTH,
            budget_bytes=budget,
            threads=self.threads,
            metrics=metrics,
            clock=self.clock,
        )

    async def apply(self, *heads: str, seconds: float = LONG, client: str = "") -> list[Applied]:
        found = await self.heads.apply(STATES, heads, Deadline.after(seconds), client)
        assert [each.head for each in found] == list(heads)
        return found

    async def one(self, head: str = "intent", seconds: float = LONG) -> Applied:
        (applied,) = await self.apply(head, seconds=seconds)
        return applied

    async def looked(self) -> None:
        """Has the store checked for new versions of a head, and waits until that is done."""
        before = self.count("looks", result="ok") + self.count("looks", result="failed")
        self.clock.advance(REFRESH_SECONDS)
        await self.one()
        await happens(
            lambda: self.count("looks", result="ok") + self.count("looks", result="failed") > before
        )

    def count(self, name: str, **labels: str) -> float:
        found = self.registry.get_sample_value(
            f"winnow_heads_{name}_total", {"ring": "test", **labels}
        )
        return found or 0.0

    def gauge(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"winnow_heads_{name}", {"ring": "test"})

    def in_memory(self) -> list[str]:
        return [head.head_id for head in self.heads.cached()]

    def one_head(self) -> int:
        """Bytes that a head takes."""
        return max(head.bytes for head in self.heads.cached())


@contextlib.asynccontextmanager
async def heads_of(root: Path, budget: int = 64 * MEGABYTE) -> AsyncIterator[LoadedHeads]:
    group = LoadedHeads(root, budget)
    try:
        yield group
    finally:
        group.store.go_on.set()
        group.heads.close()
        group.threads.close()
        await turn()


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[LoadedHeads]:
    async with heads_of(tmp_path) as made:
        yield made


def said(applied: Applied) -> str:
    assert applied.failure is None, applied.failure
    assert isinstance(applied.prediction, SequencePrediction)
    return applied.prediction.labels[0].label


def failure(applied: Applied) -> Exception:
    assert applied.prediction is None
    assert applied.version == 0
    assert applied.failure is not None
    return applied.failure


async def test_warm_heads_are_heads(group: LoadedHeads) -> None:
    heads: Heads = group.heads
    assert heads is group.heads


async def test_a_head_is_loaded_on_first_use_and_then_stays(group: LoadedHeads) -> None:
    group.store.add("intent")
    assert group.in_memory() == []
    for _ in range(3):
        applied = await group.one()
        assert (said(applied), applied.version) == (label_of(1), 1)
    assert group.store.fetched == [("intent", 1)]
    assert (group.count("lookups", result="miss"), group.count("lookups", result="hit")) == (1, 2)
    assert group.count("loads", result="loaded") == 1
    assert group.gauge("warm") == 1
    assert group.gauge("memory_bytes") == group.one_head()


async def test_heads_that_are_not_used_cost_nothing(group: LoadedHeads) -> None:
    for number in range(20):
        group.store.add(f"head-{number}")
    await group.one("head-7")
    assert group.in_memory() == ["head-7"]
    assert set(group.store.asked) == {"head-7"}


async def test_several_heads_of_both_kinds_read_the_same_states(
    group: LoadedHeads, tmp_path: Path
) -> None:
    group.store.add("intent")
    group.store.publish(small_head(tmp_path / "t", "entities", kind="token", says=1))
    for _ in range(2):
        intent, entities = await group.apply("intent", "entities")
        assert said(intent) == label_of(1)
        assert isinstance(entities.prediction, TokenPrediction)
        assert len(entities.prediction.spans) == 2


async def test_a_head_named_twice_is_applied_once_and_released(group: LoadedHeads) -> None:
    group.store.add("intent")
    for _ in range(2):
        first, second = await group.apply("intent", "intent")
        assert first is second
    await is_free(group, "intent")


async def test_all_callers_of_a_head_wait_for_one_load(group: LoadedHeads) -> None:
    group.store.add("intent")
    found = await asyncio.gather(*(group.one() for _ in range(20)))
    assert [said(each) for each in found] == [label_of(1)] * 20
    assert group.store.fetched == [("intent", 1)]


async def test_heads_in_memory_do_not_wait_for_heads_that_load(group: LoadedHeads) -> None:
    """The store hangs; a head that is warm says what it says, and the other is late."""
    group.store.add("intent")
    group.store.add("topic")
    await group.one()
    group.store.go_on.clear()
    for seconds in growing(4.0):
        intent, topic = await group.apply("intent", "topic", seconds=seconds)
        if intent.failure is None:
            break
    assert said(intent) == label_of(1)
    assert isinstance(failure(topic), DeadlineExceededError)
    group.store.go_on.set()
    await happens(lambda: "topic" in group.in_memory())
    assert said(await group.one("topic")) == label_of(1)
    assert group.store.fetched.count(("topic", 1)) == 1


async def test_a_load_outlives_its_callers(group: LoadedHeads) -> None:
    group.store.add("intent")
    group.store.go_on.clear()
    asking = asyncio.create_task(group.one())
    await happens(lambda: bool(group.store.asked))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    group.store.go_on.set()
    await happens(lambda: group.in_memory() == ["intent"])
    await is_free(group, "intent")


async def test_a_caller_that_is_cancelled_while_heads_run_leaves_none_in_use(
    group: LoadedHeads,
) -> None:
    group.store.add("intent")
    await group.one()
    blocked, go_on = await blocker(group.threads)
    asking = [asyncio.create_task(group.one()) for _ in range(3)]
    await turn()
    for each in asking:
        each.cancel()
    await asyncio.wait(asking)
    go_on()
    await blocked
    await is_free(group, "intent")


async def test_a_deadline_that_passes_in_the_queue_fails_the_heads_and_frees_them(
    group: LoadedHeads,
) -> None:
    group.store.add("intent")
    await group.one()
    blocked, go_on = await blocker(group.threads)
    assert isinstance(failure(await group.one(seconds=0.01)), DeadlineExceededError)
    go_on()
    await blocked
    await is_free(group, "intent")


async def blocker(threads: FairThreads) -> tuple[asyncio.Task[None], Callable[[], None]]:
    """Keeps the thread busy until it is told to go on."""
    began, event = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        assert event.wait(LONG)

    blocked = asyncio.create_task(threads.run("other", wait))
    await happens(began.is_set)
    return blocked, event.set


async def is_free(group: LoadedHeads, head: str) -> None:
    """Nobody holds the head any more, so it may leave."""
    await turn()
    assert not group.heads._cache.is_held(head)


async def test_the_least_recently_used_leaves_for_another(tmp_path: Path) -> None:
    one = estimate_memory(load_head(versioned_head(tmp_path / "one", "a", 1)).manifest)
    async with heads_of(tmp_path, budget=int(one * 2.5)) as group:
        for head in "abc":
            group.store.add(head)
        await group.apply("a", "b")
        await group.one("a")
        assert said(await group.one("c")) == label_of(1)
        assert group.in_memory() == ["a", "c"]
        assert group.count("evictions") == 1
        group.store.pin("a", True)
        group.clock.advance(REFRESH_SECONDS)
        await group.one("a")
        await happens(lambda: next(iter(group.heads.cached())).pinned)
        for head in "bcbc":
            assert said(await group.one(head)) == label_of(1)
            assert "a" in group.in_memory()
        a, b, c = await group.apply("a", "b", "c")
        assert said(a) == label_of(1)
        assert said(b) == said(c) == label_of(1), "one after the other, as there is room"
        assert said(await group.one("b")) == label_of(1)


async def test_more_heads_than_there_is_room_for_are_applied_in_turn(tmp_path: Path) -> None:
    """They used to fail at once."""
    one = estimate_memory(load_head(versioned_head(tmp_path / "one", "a", 1)).manifest)
    async with heads_of(tmp_path, budget=int(one * 1.5)) as group:
        for head in "abcd":
            group.store.add(head)
        assert [said(each) for each in await group.apply(*"abcd")] == [label_of(1)] * 4
        assert len(group.in_memory()) == 1


async def test_heads_for_which_others_leave_no_room_are_refused(tmp_path: Path) -> None:
    one = estimate_memory(load_head(versioned_head(tmp_path / "one", "a", 1)).manifest)
    async with heads_of(tmp_path, budget=int(one * 1.5)) as group:
        for head in "abc":
            group.store.add(head)
        await group.one("a")
        slot = group.heads._cache.find("a")
        assert slot is not None
        group.heads._cache.hold(slot)
        a, b, c = await group.apply("a", "b", "c")
        assert said(a) == label_of(1)
        assert all(isinstance(failure(each), OverloadedError) for each in (b, c))


async def test_a_head_that_can_never_fit_is_refused(tmp_path: Path) -> None:
    async with heads_of(tmp_path, budget=1000) as group:
        group.store.add("intent")
        assert isinstance(failure(await group.one()), OverloadedError)
        assert group.in_memory() == []
        assert group.gauge("memory_bytes") == 0
        assert group.count("loads", result="no_room") == 1


async def test_a_new_version_takes_over_while_the_old_one_serves(group: LoadedHeads) -> None:
    group.store.add("intent")
    await group.one()
    group.store.add("intent", 2)
    assert (await group.one()).version == 1  # the store is believed for a while
    group.store.go_on.clear()
    group.clock.advance(REFRESH_SECONDS)
    for _ in range(3):
        assert (await group.one()).version == 1
    group.store.go_on.set()
    await happens(lambda: group.heads.cached()[0].version == 2)
    assert said(await group.one()) == label_of(2)
    assert group.count("loads", result="replaced") == 1
    assert group.gauge("memory_bytes") == group.one_head()
    group.store.rollback("intent")
    await group.looked()
    assert said(await group.one()) == label_of(1)


async def test_a_broken_version_never_replaces_a_good_one_and_is_said_once(
    group: LoadedHeads,
) -> None:
    group.store.add("intent")
    await group.one()
    group.store.add("intent", 2)
    group.store.damage("intent", 2)
    with capture_logs() as logged:
        for _ in range(40):
            await group.looked()
            assert said(await group.one()) == label_of(1)
    (line,) = logged
    assert (line["version"], line["still_serving"]) == (2, 1)
    assert "damaged" in line["error"]
    tried = group.store.fetched.count(("intent", 2))
    assert 2 <= tried <= 4  # again after a while: it may have been mended
    group.store.add("intent", 3)
    await group.looked()
    assert said(await group.one()) == label_of(3)


async def test_a_version_that_is_mended_is_served(group: LoadedHeads) -> None:
    group.store.add("intent")
    await group.one()
    group.store.add("intent", 2)
    group.store.damage("intent", 2)
    await group.looked()
    group.store.add("intent", 2)
    group.clock.advance(100)
    await group.looked()
    assert said(await group.one()) == label_of(2)


async def test_a_cold_head_whose_version_is_broken_is_served_as_it_was_before(
    group: LoadedHeads,
) -> None:
    group.store.add("intent")
    group.store.add("intent", 2)
    group.store.damage("intent", 2)
    with capture_logs() as logged:
        assert said(await group.one()) == label_of(1)
    assert [line["version"] for line in logged] == [2]


async def test_a_head_of_which_no_version_works_is_unavailable(group: LoadedHeads) -> None:
    for version in (1, 2):
        group.store.add("intent", version)
        group.store.damage("intent", version)
    group.store.add("topic")
    for _ in range(3):
        intent, topic = await group.apply("intent", "topic")
        assert said(topic) == label_of(1)
        error = failure(intent)
        assert isinstance(error, UnavailableError)
        assert "head intent version 2 cannot be loaded" in str(error)
        assert str(group.store.root) not in str(error)
    assert group.store.fetched.count(("intent", 2)) == 1  # it is not tried again at once
    group.clock.advance(REFRESH_SECONDS)
    await group.one()
    assert group.store.fetched.count(("intent", 2)) == 2


async def test_heads_in_memory_serve_on_while_the_store_is_away(group: LoadedHeads) -> None:
    group.store.add("intent")
    group.store.add("topic")
    await group.one()
    group.store.away = True
    with capture_logs() as logged:
        for _ in range(5):
            await group.looked()
            intent, topic = await group.apply("intent", "topic")
            assert said(intent) == label_of(1)
            assert isinstance(failure(topic), UnavailableError)
            assert "no route" not in str(failure(topic))
        group.store.away = False
        assert said(await group.one("topic")) == label_of(1)
        await group.looked()
    assert [line["event"] for line in logged] == [
        "head store unreachable; heads in memory stay in use",
        "head store reachable again",
    ]


async def test_a_head_that_left_the_store_serves_on(group: LoadedHeads) -> None:
    group.store.add("intent")
    await group.one()
    group.store.fails = NotFoundError("no head")
    with capture_logs() as logged:
        for _ in range(3):
            await group.looked()
            assert said(await group.one()) == label_of(1)
    assert [(line["event"], line["still_serving"]) for line in logged] == [
        ("version check failed", 1)
    ]


async def test_a_store_that_fails_in_unheard_of_ways_fails_its_head_only(
    group: LoadedHeads,
) -> None:
    group.store.add("intent")
    await group.one()
    group.store.fails = ZeroDivisionError("nobody thought of it")
    with capture_logs():
        intent, topic = await group.apply("intent", "topic")
    assert said(intent) == label_of(1)
    assert isinstance(failure(topic), UnavailableError)


async def test_a_damaged_record_of_the_served_version_fails_its_head_only(
    group: LoadedHeads,
) -> None:
    group.store.add("intent")
    group.store.add("topic")
    await group.one()
    for head in ("intent", "topic"):
        (group.store.root / "store" / head / "current.json").write_text("{}")
    with capture_logs() as logged:
        await group.looked()
        intent, topic = await group.apply("intent", "topic")
    assert said(intent) == label_of(1)
    assert isinstance(failure(topic), UnavailableError)
    assert str(failure(topic)).startswith("head topic cannot be loaded")
    assert {line["head"] for line in logged} == {"intent", "topic"}


async def test_an_unknown_head_is_looked_for_once_in_a_while(group: LoadedHeads) -> None:
    group.store.add("intent")
    for _ in range(5):
        intent, nobody = await group.apply("intent", "nobody")
        assert said(intent) == label_of(1)
        assert isinstance(failure(nobody), NotFoundError)
        assert str(failure(nobody)) == "there is no head 'nobody'"
    assert group.store.asked.count("nobody") == 1
    group.store.add("nobody")
    group.clock.advance(REFRESH_SECONDS)
    assert said(await group.one("nobody")) == label_of(1)


async def test_unknown_names_fill_no_memory(group: LoadedHeads) -> None:
    group.store.add("intent")
    for number in range(1100):
        await group.one(f"nobody-{number}")
    assert len(group.heads._loader._failures) == 1000
    assert not group.heads._cache.slots()


async def test_a_store_that_hangs_is_not_given_ever_more_to_do(
    group: LoadedHeads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("winnow.heads.loader._MAX_LOADING", 10)
    group.store.add("intent")
    group.store.go_on.clear()
    for number in range(10):
        assert isinstance(failure(await group.one(f"a{number}", 0.001)), DeadlineExceededError)
    assert isinstance(failure(await group.one("one-more", 0.001)), OverloadedError)
    group.store.go_on.set()
    await happens(lambda: not group.heads._cache.slots())
    assert said(await group.one()) == label_of(1)


async def test_a_head_of_another_encoder_is_refused(group: LoadedHeads, tmp_path: Path) -> None:
    group.store.publish(small_head(tmp_path / "a", fingerprint="f" * 16))
    error = failure(await group.one())
    assert isinstance(error, IdentityError)
    assert "ffffffffffffffff" in str(error)


async def test_states_of_another_width_are_refused(group: LoadedHeads) -> None:
    for shape in ((4, WIDTH + 1), (1, WIDTH), (4,)):
        with pytest.raises(IdentityError):
            await group.heads.apply(np.ones(shape, np.float16), ["intent"], Deadline.after(LONG))


async def test_the_first_states_tell_the_width_of_an_encoder_that_came_later(
    tmp_path: Path,
) -> None:
    threads = FairThreads(1, "heads")
    metrics = HeadCacheMetrics(CollectorRegistry()).group("test")
    store = open_store(tmp_path / "store")
    store.publish(small_head(tmp_path / "intent", says=1))
    warm = LocalHeads(
        store,
        fingerprint=FINGERPRINT,
        width=None,
        budget_bytes=MEGABYTE,
        threads=threads,
        metrics=metrics,
    )
    try:
        assert said((await warm.apply(STATES, ["intent"], Deadline.after(LONG)))[0]) == "weather"
        with pytest.raises(IdentityError):
            await warm.apply(np.ones((4, WIDTH + 1), np.float16), ["intent"], Deadline.after(LONG))
    finally:
        warm.close()
        threads.close()


async def test_a_head_that_moved_says_where_to_and_serves_on(group: LoadedHeads) -> None:
    group.store.add("intent")
    assert (await group.one()).moved_to == ""
    group.store.move("intent", "german")
    await group.looked()
    applied = await group.one()
    assert (said(applied), applied.moved_to) == (label_of(1), "german")


async def test_one_head_whose_logits_are_no_numbers_fails_alone(group: LoadedHeads) -> None:
    group.store.add("intent")
    group.store.publish(small_head(group.store.root / "n", "nan"))
    await group.apply("intent", "nan")
    states = np.full((4, WIDTH), np.nan, np.float16)
    found = await group.heads.apply(states, ["nan"], Deadline.after(LONG))
    assert "not finite" in str(failure(found[0]))
    assert said(await group.one()) == label_of(1)
    assert group.count("applied", result="failed") == 1


async def test_closing_ends_loads(tmp_path: Path) -> None:
    async with heads_of(tmp_path) as group:
        group.store.add("intent")
        group.store.go_on.clear()
        asking = asyncio.create_task(group.one())
        await happens(lambda: bool(group.store.asked))
        group.heads.close()
        assert isinstance(failure(await asking), UnavailableError)


async def test_predictions_go_on_while_versions_change(tmp_path: Path) -> None:
    """10 000 predictions, beside a publisher that never rests: none fails, none is a mixture."""
    directory = tmp_path / "store"
    writer: HeadStore = open_store(directory)
    served: set[int] = set()
    stop = asyncio.Event()

    def publish(version: int) -> None:
        served.add(version)
        writer.publish(versioned_head(tmp_path / f"v{version}", "intent", version))

    publish(1)
    threads, registry = FairThreads(2, "heads"), CollectorRegistry()
    warm = LocalHeads(
        open_store(directory),
        fingerprint=FINGERPRINT,
        width=WIDTH,
        budget_bytes=64 * MEGABYTE,
        threads=threads,
        metrics=HeadCacheMetrics(registry).group("test"),
        refresh=0.0,
    )

    async def keep_publishing() -> int:
        version = 1
        while not stop.is_set():
            version += 1
            await asyncio.to_thread(publish, version)
            if version % 5 == 0:
                with contextlib.suppress(ArtefactError):  # that one was broken
                    await asyncio.to_thread(writer.rollback, "intent")
            if version % 7 == 0:
                (directory / "intent" / str(version) / "head.onnx").write_bytes(b"broken")
        return version

    async def predict(count: int) -> list[Applied]:
        applied: list[Applied] = []
        for _ in range(count):
            applied += await warm.apply(STATES, ["intent"], Deadline.after(LONG))
        return applied

    publishing = asyncio.create_task(keep_publishing())
    try:
        with capture_logs():
            found: Sequence[Applied] = sum(
                await asyncio.gather(*(predict(1250) for _ in range(8))), list[Applied]()
            )
            later: list[Applied] = []
            while len(versions_of([*found, *later])) <= 3 and not publishing.done():
                later += await predict(1)  # the publisher may have stood still
            stop.set()
            await publishing
    finally:
        publishing.cancel()
        warm.close()
        threads.close()
    assert len(found) == 10_000
    for each in (*found, *later):
        assert said(each) == label_of(each.version)
        assert each.version in served
    assert len(versions_of([*found, *later])) > 3


def versions_of(applied: Sequence[Applied]) -> set[int | None]:
    return {each.version for each in applied}


async def test_heads_are_served_from_afar_and_replaced(tmp_path: Path) -> None:
    url, cache = f"memory://{uuid.uuid4().hex}", tmp_path / "cache"
    writer = open_store(url, tmp_path / "elsewhere")
    writer.publish(versioned_head(tmp_path / "1", "intent", 1))
    threads, registry = FairThreads(1, "heads"), CollectorRegistry()
    metrics = HeadCacheMetrics(registry).group("test")
    store = open_store(url, cache)
    warm = LocalHeads(
        store,
        fingerprint=FINGERPRINT,
        width=WIDTH,
        budget_bytes=MEGABYTE,
        threads=threads,
        metrics=metrics,
        refresh=0.0,
    )
    try:
        (applied,) = await warm.apply(STATES, ["intent"], Deadline.after(LONG))
        assert said(applied) == label_of(1)
        writer.publish(versioned_head(tmp_path / "2", "intent", 2))
        while applied.version == 1:
            (applied,) = await warm.apply(STATES, ["intent"], Deadline.after(LONG))
            assert said(applied) == label_of(applied.version)
    finally:
        warm.close()
        threads.close()


def test_a_loop_that_ends_leaves_no_task_behind(tmp_path: Path) -> None:
    """Closing while a look is under way: nothing is said of it afterwards."""

    async def serve() -> Any:
        async with heads_of(tmp_path) as group:
            group.store.add("intent")
            await group.one()
            group.store.go_on.clear()
            group.clock.advance(REFRESH_SECONDS)
            return await group.one()

    assert said(asyncio.run(serve())) == label_of(1)
