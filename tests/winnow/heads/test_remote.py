"""Heads on servers, over real gRPC: the same results as locally, and no failure when one server is lost."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence

import numpy as np
import pytest
from head_server import ServedHeads
from prometheus_client import CollectorRegistry
from small_heads import FINGERPRINT, WIDTH, small_head
from tenacious import LONG, growing, happens

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied
from winnow.errors import IdentityError, NotFoundError, UnavailableError
from winnow.heads.heads import Heads, States
from winnow.heads.local import LocalHeads
from winnow.heads.manifest import EncoderEntry
from winnow.heads.metrics import HeadCacheMetrics
from winnow.heads.placed import PlacedHeads
from winnow.heads.remote import placed_heads
from winnow.heads.store import HeadStore, open_store
from winnow.inference.fair_threads import FairThreads
from winnow.replicas.policy.placement import Placement

ENCODER = EncoderEntry(name="small", fingerprint=FINGERPRINT, width=WIDTH)
KINDS = {f"intent-{n}": "sequence" for n in range(6)} | {f"names-{n}": "token" for n in range(6)}
HEADS = list(KINDS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> HeadStore:
    root = tmp_path_factory.mktemp("store")
    made = open_store(root / "store")
    for number, (head, kind) in enumerate(KINDS.items(), 1):
        made.publish(small_head(root / head, head, version=number, kind=kind, threshold=None))
    return made


@contextlib.contextmanager
def pool() -> Iterator[FairThreads]:
    threads = FairThreads(1, "heads")
    try:
        yield threads
    finally:
        threads.close()


def warm_heads(store: HeadStore, threads: FairThreads) -> LocalHeads:
    metrics = HeadCacheMetrics(CollectorRegistry()).group("small")
    return LocalHeads(
        store,
        fingerprint=FINGERPRINT,
        width=WIDTH,
        budget_bytes=100_000_000,
        threads=threads,
        metrics=metrics,
    )


class Scene:
    """Head servers, and the heads on them as a front has them."""

    def __init__(self, servers: Sequence[ServedHeads], heads: PlacedHeads) -> None:
        self.servers, self.heads = servers, heads

    def belongs_to(self, number: int) -> list[str]:
        """The heads of a server."""
        placement = Placement([server.address for server in self.servers])
        address = self.servers[number].address
        return [head for head in HEADS if placement.order(head)[0] == address]


@contextlib.asynccontextmanager
async def scene(made: Sequence[Heads], fingerprint: str = FINGERPRINT) -> AsyncIterator[Scene]:
    servers = [ServedHeads(heads, ENCODER) for heads in made]
    for server in servers:
        await server.start()
    placed = placed_heads(fingerprint)
    placed.update([server.address for server in servers])
    try:
        yield Scene(servers, placed)
    finally:
        await placed.close()
        for server in servers:
            await server.server.drain(0)


def some_states(number: int = 0) -> States:
    random = np.random.default_rng(number)
    return random.normal(size=(3 + number % 20, WIDTH)).astype(np.float16)


async def test_heads_say_the_same_here_and_there_bit_for_bit(store: HeadStore) -> None:
    with pool() as threads:
        here = [warm_heads(store, threads) for _ in range(4)]
        async with scene(here[1:]) as there:
            for number in range(40):
                states, deadline = some_states(number), Deadline.after(LONG)
                local = await here[0].apply(states, HEADS, deadline)
                assert all(each.failure is None for each in local)
                assert await there.heads.apply(states, HEADS, deadline) == local
        for heads in here:
            heads.close()


async def test_one_of_three_servers_killed_under_load_fails_nothing(store: HeadStore) -> None:
    """It takes no calls any more, cuts those in hand, and is not waited for."""
    with pool() as threads:
        warm = [warm_heads(store, threads) for _ in range(3)]
        async with scene(warm) as there:
            done: list[list[Applied]] = []

            async def ask() -> None:
                while len(done) < 600:
                    deadline = Deadline.after(LONG)
                    done.append(await there.heads.apply(some_states(len(done)), HEADS, deadline))

            asking = [asyncio.create_task(ask()) for _ in range(8)]
            await happens(lambda: len(done) > 100, LONG)
            await there.servers[0].server.grpc.stop(None)
            await asyncio.gather(*asking)
            replicas = there.heads._servers.pool.replicas.by_address.values()
            assert sum(not replica.active for replica in replicas) <= 1
        failed = [each for applied in done for each in applied if each.failure is not None]
        assert failed == []
        for heads in warm:
            heads.close()


class Hangs:
    """Heads that never come, but say when they are asked, and when nobody waits any more."""

    def __init__(self) -> None:
        self.asked, self.given_up = asyncio.Event(), asyncio.Event()
        self.left = 0.0

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        self.left = deadline.left()
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up.set()
        return []


async def test_a_front_that_gives_up_frees_every_server() -> None:
    made = [Hangs() for _ in range(3)]
    async with scene(made) as there:
        asking = asyncio.create_task(there.heads.apply(some_states(), HEADS, Deadline.after(LONG)))
        for heads in made:
            await asyncio.wait_for(heads.asked.wait(), LONG)
        asking.cancel()
        for heads in made:
            await asyncio.wait_for(heads.given_up.wait(), LONG)
        await happens(lambda: all(server.in_hand() == 0 for server in there.servers))
        await asyncio.wait([asking])


async def test_deadlines_travel_along() -> None:
    hangs = Hangs()
    async with scene([hangs]) as there:
        for seconds in growing(2.0):
            began = time.monotonic()
            (applied,) = await there.heads.apply(some_states(), ["x"], Deadline.after(seconds))
            assert time.monotonic() - began >= seconds - 0.1
            if hangs.left > 0:
                break
        assert "the head server" in str(applied.failure)
        assert 0 < hangs.left < seconds


async def test_a_server_that_leaves_gets_no_more_calls(store: HeadStore) -> None:
    """It says NOT_SERVING, and serves on; its heads are elsewhere at once."""
    with pool() as threads:
        warm = [warm_heads(store, threads) for _ in range(3)]
        async with scene(warm) as there:
            # which heads a server has depends on its port
            number = next(each for each in range(3) if there.belongs_to(each))
            mine = there.belongs_to(number)
            await there.heads.apply(some_states(), HEADS, Deadline.after(LONG))
            assert {each.head_id for each in warm[number].cached()} == set(mine)
            await there.servers[number].server.set_serving(False)

            async def elsewhere() -> bool:
                found = await there.heads.apply(some_states(), mine, Deadline.after(LONG))
                assert all(each.failure is None for each in found)
                others = (each for each in warm if each is not warm[number])
                return {head.head_id for each in others for head in each.cached()} >= set(HEADS)

            while not await elsewhere():
                pass
        for heads in warm:
            heads.close()


async def test_a_head_that_is_not_there_fails_alone(store: HeadStore) -> None:
    with pool() as threads:
        warm = warm_heads(store, threads)
        async with scene([warm]) as there:
            good, unknown = await there.heads.apply(
                some_states(), [HEADS[0], "nobody"], Deadline.after(LONG)
            )
        assert good.failure is None
        assert isinstance(unknown.failure, NotFoundError)
        warm.close()


async def test_servers_of_another_encoder_are_refused(store: HeadStore) -> None:
    with pool() as threads:
        warm = warm_heads(store, threads)
        async with scene([warm, warm], fingerprint="other") as there:
            found = await there.heads.apply(some_states(), HEADS, Deadline.after(LONG))
        assert {type(each.failure) for each in found} == {IdentityError}
        warm.close()


async def test_a_server_that_is_not_there_fails_every_head() -> None:
    heads = placed_heads(FINGERPRINT)
    heads.update(["127.0.0.1:1"])
    found = await heads.apply(some_states(), ["a", "b"], Deadline.after(LONG))
    await heads.close()
    assert [each.head for each in found] == ["a", "b"]
    assert all(isinstance(each.failure, UnavailableError) for each in found)
