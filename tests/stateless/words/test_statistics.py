"""Counts of words, asked of shards as they change."""

import asyncio

import numpy as np
import pytest
from fakes import FINGERPRINT
from live_front import LiveFront
from logged_shards import LiveReplica, ShardLog, counted
from structlog.testing import capture_logs
from tenacious import LONG, happens, turn

from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion
from winnow.domain.word_counts import WordChanges
from winnow.errors import UnavailableError
from winnow.stateless.words.served import ServedWords
from winnow.stateless.words.statistics import WordStatistics

BUILT = [{"a": (1, 2)}, {"b": (2, 3)}]
INDEX = counted({**BUILT[0], **BUILT[1]})
ASKED = EncodedQuestion(
    text="who", token_ids=(1, 2, 3), vector=np.zeros(2, np.float32), bundle_fingerprint=FINGERPRINT
)


class House:
    """Two shards, the first with two replicas, and the counts of their words."""

    def __init__(self) -> None:
        self.logs = [ShardLog(own, f"log-{shard}") for shard, own in enumerate(BUILT)]
        self.x, self.y, self.z = (
            LiveReplica(name, self.logs[shard], shard, 2, INDEX)
            for name, shard in (("x", 0), ("y", 0), ("z", 1))
        )
        self.front = LiveFront(self.x, self.y, self.z)
        self.statistics = WordStatistics(self.front.cluster, self.front.snapshot.word_sources)

    def put(self, shard: int, name: str, *words: int) -> None:
        self.logs[shard].put(name, words)
        for each in (self.x, self.y, self.z):
            each.follow()
        self.front.look()

    async def weights(self) -> tuple[float, ...]:
        await self.statistics.refresh()
        return self.statistics.weigh(ASKED).rarities


@pytest.fixture
async def house() -> House:
    return House()


async def test_an_index_that_was_never_written_to_sends_none(house: House) -> None:
    assert await house.weights() == ()
    assert house.statistics.weigh(ASKED) is ASKED
    assert house.x.counts == house.z.counts == 0


async def test_shards_are_asked_only_when_they_were_written_to(house: House) -> None:
    house.put(0, "c", 1)
    first = await house.weights()
    assert (house.x.counts + house.y.counts, house.z.counts) == (1, 0)
    assert await house.weights() == first
    house.put(1, "d", 1)
    assert await house.weights() != first
    assert (house.x.counts + house.y.counts, house.z.counts) == (1, 1)


async def test_a_write_that_an_answer_knew_of_is_counted_before_the_next_look(
    house: House,
) -> None:
    house.logs[1].put("d", (1,))
    house.z.follow()
    await house.front.ask()
    await house.weights()
    assert house.z.counts == 1


async def test_what_a_shard_told_last_stays_while_it_cannot_tell(house: House) -> None:
    house.put(1, "d", 1)
    before = await house.weights()
    house.put(1, "e", 1)
    house.z.fails = UnavailableError("z: gone")
    with capture_logs() as logs:
        assert await house.weights() == before
        assert await house.weights() == before
    said = [each for each in logs if each["event"] == "word counts not updated"]
    assert [(each["shard"], each["reason"]) for each in said] == [(1, "z: gone")]
    house.z.fails = None
    assert await house.weights() != before


async def test_another_replica_is_asked_where_the_first_one_fails(house: House) -> None:
    house.put(0, "c", 1)
    house.x.fails = UnavailableError("x: gone")
    assert await house.weights()
    assert house.y.counts == 1


async def test_a_replica_that_lags_takes_nothing_back(house: House) -> None:
    house.put(0, "c", 1)
    before = await house.weights()
    house.y.sequence = 0
    house.x.fails = UnavailableError("x: gone")
    house.front.cluster.record_answer(0, 2)  # so that it is asked again
    assert await house.weights() == before


async def test_a_shard_that_was_built_with_other_counts_is_refused_by_name(house: House) -> None:
    house.put(0, "c", 1)
    house.z.index = counted(BUILT[1])
    before = await house.weights()
    house.put(1, "d", 1)
    with capture_logs() as logs:
        assert await house.weights() == before
    assert "shards 1 and 0 have different word counts" in logs[0]["reason"]


async def test_changes_that_cannot_be_are_refused_and_said_once(house: House) -> None:
    house.put(0, "c", 1)
    before = await house.weights()

    async def nonsense(deadline: Deadline) -> WordChanges:
        return WordChanges(
            sequence=9,
            ids=np.array([1], np.uint32),
            by=np.array([-9], np.int32),
            passages=0,
            tokens=0,
        )

    house.z.changes = nonsense  # type: ignore[method-assign]
    house.put(1, "d", 1)
    with capture_logs() as logs:
        assert await house.weights() == before
        assert await house.weights() == before
    assert len([each for each in logs if "inconsistent" in each.get("reason", "")]) == 1


async def test_the_words_of_an_index_with_tenants_are_not_counted_over_all_tenants(
    house: House,
) -> None:
    """Its shards count the words of each tenant, and halves of a shard do not count the others."""
    house.x.tenants = house.y.tenants = house.z.tenants = True
    house.put(0, "c", 1)
    house.front.look()
    assert await house.weights() == ()
    assert house.x.counts == house.y.counts == house.z.counts == 0


async def test_equal_counts_have_equal_names_and_others_others(house: House) -> None:
    names = [house.statistics.name]
    for name in "cd":
        house.put(0, name, 1)
        await house.weights()
        names.append(house.statistics.name)
        await house.weights()
        assert house.statistics.name == names[-1]
    assert len(set(names)) == 3


async def test_counting_goes_on_whatever_goes_wrong(house: House) -> None:
    went = asyncio.Event()

    async def bug(deadline: Deadline) -> WordChanges:
        went.set()
        raise ZeroDivisionError

    tell, house.z.changes = house.z.changes, bug  # type: ignore[method-assign]
    words = ServedWords(house.front.snapshot.word_sources, turn)
    assert words.name == ()
    words.statistics_of(house.front.cluster)
    running = asyncio.create_task(words.run())
    house.put(1, "d", 1)
    await asyncio.wait_for(went.wait(), LONG)
    house.z.changes = tell  # type: ignore[method-assign]
    await happens(lambda: words.name != ())
    running.cancel()
