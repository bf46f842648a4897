"""Passages are deleted by filter, page by page."""

from typing import Any

import pytest
from passage_front import FakeFeed, PassageFront
from tenacious import LATER

from winnow.deadline import Deadline
from winnow.domain.passage import Passage
from winnow.domain.write import FilteredDeletion, Position
from winnow.errors import InvalidRequestError, UnavailableError
from winnow.stateless.feed.filter_deletion import FilterDeletion


def is_selected(where: str, passage: Passage) -> bool:
    """Understands the filters of these tests only."""
    return 'document = "d \\"1\\""' not in where or ('"d \\"1\\""' in where and passage.id < "p5")


@pytest.fixture
def front() -> PassageFront:
    made = PassageFront(2, [f"p{number}" for number in range(9)])
    for own in made.shards.values():
        own.matches, own.page_limit = is_selected, 2
    return made


@pytest.fixture
def feed(front: PassageFront) -> FakeFeed:
    return FakeFeed(front)


@pytest.fixture
def deletion(front: PassageFront, feed: FakeFeed) -> FilterDeletion:
    return FilterDeletion(front.core, feed)  # type: ignore[arg-type]


def left(front: PassageFront) -> list[str]:
    return sorted(each for own in front.shards.values() for each in own.stored)


async def test_all_passages_of_a_document_are_deleted(
    front: PassageFront, feed: FakeFeed, deletion: FilterDeletion
) -> None:
    done = await deletion.delete(FilteredDeletion(document='d "1"'), LATER)
    assert (done.matched, done.deleted, done.complete) == (5, 5, True)
    assert done.positions == (Position(0, 5),)
    assert len(feed.batches) > 1
    assert left(front) == ["p5", "p6", "p7", "p8"]


async def test_a_dry_run_counts_and_deletes_nothing(
    front: PassageFront, feed: FakeFeed, deletion: FilterDeletion
) -> None:
    done = await deletion.delete(FilteredDeletion(document='d "1"', dry_run=True), LATER)
    assert (done.matched, done.deleted, done.complete) == (5, 0, True)
    assert feed.batches == []


async def test_a_deletion_that_was_interrupted_can_be_repeated(
    front: PassageFront, feed: FakeFeed, deletion: FilterDeletion
) -> None:
    feed.fails = UnavailableError("gone")
    with pytest.raises(UnavailableError):
        await deletion.delete(FilteredDeletion(where='lang = "en"'), LATER)
    assert 0 < len(left(front)) < 9
    feed.fails = None
    done = await deletion.delete(FilteredDeletion(where='lang = "en"'), LATER)
    assert (done.complete, left(front)) == (True, [])


async def test_a_passage_stays_if_it_is_replaced_before_its_page_is_listed(
    front: PassageFront,
    feed: FakeFeed,
    deletion: FilterDeletion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A passage that is replaced between its listing and its deletion is deleted."""
    replaced: set[str] = set()
    delete = feed.delete

    async def replace_and_delete(*arguments: Any) -> Any:
        replaced.update({"p0", "p4"})
        return await delete(*arguments)

    monkeypatch.setattr(feed, "delete", replace_and_delete)
    for own in front.shards.values():
        own.matches = lambda where, each: is_selected(where, each) and each.id not in replaced
    done = await deletion.delete(FilteredDeletion(document='d "1"'), LATER)
    assert (done.matched, done.deleted) == (4, 4)
    assert left(front) == ["p4", "p5", "p6", "p7", "p8"]


async def test_a_deletion_ends_before_its_deadline_and_says_that_more_is_left(
    front: PassageFront, feed: FakeFeed, deletion: FilterDeletion
) -> None:
    feed.seconds = 8.0
    deadline = Deadline.after(10, feed.clock)
    done = await deletion.delete(FilteredDeletion(where='lang = "en"'), deadline)
    assert not done.complete
    assert done.deleted == done.matched == 9 - len(left(front)) > 0


@pytest.mark.parametrize(
    "request_", [FilteredDeletion(), FilteredDeletion(where='lang = "en"', document="d")]
)
async def test_either_a_filter_or_a_document_is_needed(
    deletion: FilterDeletion, request_: FilteredDeletion
) -> None:
    """An empty filter would delete the whole index."""
    with pytest.raises(InvalidRequestError, match="either a filter or a document"):
        await deletion.delete(request_, LATER)
