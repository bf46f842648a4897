"""Who is let in to feed, and how much counts as how much."""

import asyncio

import pytest
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.deadline import Deadline
from winnow.domain.passage import Passage
from winnow.domain.write import Deletion, Put
from winnow.errors import OverloadedError
from winnow.passages.canonical import PassageDigest, digest
from winnow.passages.encoding import TokenisedPut
from winnow.stateless.feed.admission import FeedAdmission, work_of
from winnow.stateless.feed.encoding import PreparedPut
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.text.tokenizer import Tokens


def admission(most: int, clock: ManualClock | None = None) -> FeedAdmission:
    return FeedAdmission(most, FeedMetrics(CollectorRegistry()), clock or ManualClock())


def put(characters: int) -> PreparedPut:
    passage = Passage("a", "", "a" * characters)
    tokenised = TokenisedPut(Put(passage), Tokens((), ()), Tokens((), ()))
    return PreparedPut(
        tokenised.write(), PassageDigest("a", None, digest(passage)), truncated=False
    )


@pytest.mark.parametrize(
    ("lengths", "work"), [([1], 1), ([2_000], 1), ([2_001], 2), ([10_000, 1], 6), ([1] * 100, 100)]
)
def test_a_long_passage_is_more_work(lengths: list[int], work: int) -> None:
    assert work_of([put(each) for each in lengths]) == work


@pytest.mark.parametrize(("count", "work"), [(1, 1), (50, 1), (51, 2), (1_000, 20)])
def test_deletions_are_little_work(count: int, work: int) -> None:
    assert work_of([Deletion(str(n)) for n in range(count)]) == work


def test_with_nothing_in_hand_anything_is_let_in() -> None:
    made = admission(10)
    with made.enter(1_000, "me"):
        assert made.in_flight == 1_000
    assert made.in_flight == 0


def test_a_request_without_room_is_refused_with_a_time_to_retry() -> None:
    clock = ManualClock()
    made = admission(10, clock)
    with made.enter(8, "me"):
        clock.advance(0.8)
    with (
        made.enter(8, "me"),
        pytest.raises(
            OverloadedError, match="8 passages are being stored, and the limit of all clients is 10"
        ) as caught,
        made.enter(4, "me"),
    ):
        raise AssertionError
    assert caught.value.retry_after == pytest.approx(0.2)  # two passages too many, 0.1 s each
    assert made.in_flight == 0


def test_a_client_that_has_much_leaves_room_for_another() -> None:
    made = admission(100)
    with made.enter(75, "greedy"), made.enter(10, "modest"):
        assert made.refusal("greedy") is not None
        with made.enter(10, "modest"):
            assert made.in_flight == 95


def test_the_door_is_open_until_there_is_no_room_at_all() -> None:
    made = admission(10)
    assert made.refusal("me") is None
    with made.enter(10, "me"):
        assert made.refusal("me") is not None
    assert made.refusal("me") is None


def test_a_failed_request_frees_its_room() -> None:
    made = admission(10)
    with pytest.raises(ValueError, match="bug"), made.enter(10, "me"):
        raise ValueError("bug")
    assert made.in_flight == 0


async def test_several_streams_wait_and_all_come_in() -> None:
    made, most = admission(10), 0

    async def stream(name: str) -> None:
        nonlocal most
        for _ in range(5):
            async with made.wait_and_enter(6, name, Deadline.after(LONG)):
                most = max(most, made.in_flight)
                await asyncio.sleep(0)

    await asyncio.wait_for(asyncio.gather(*(stream(f"s{n}") for n in range(4))), LONG)
    assert (most <= 12, made.in_flight) == (True, 0)
