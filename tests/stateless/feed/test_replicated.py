"""Writes to a shard whose replicas follow one journal."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes import FakeShardWriter
from fed_front import FedFront, ids_of, node_info
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.write import FedPassage
from winnow.errors import DeadlineExceededError, UnavailableError
from winnow.stateless.cluster.membership import ClusterView

(NAME,) = ids_of(0, 1)


@pytest.fixture
def front(bundle: Bundle) -> Iterator[FedFront]:
    """Shard 0 has three replicas."""
    made = FedFront(bundle)
    addresses = ("node-0:1", "node-0:2", "node-0:3")
    for address in addresses:
        made.nodes[address] = FakeShardWriter()
        made.infos[address] = replace(node_info(0, "journal-1"), journaled=True)
    made.view = ClusterView(made.view.identity, {**made.view.replicas, 0: addresses})
    yield made
    made.close()


async def put(front: FedFront, text: str) -> None:
    await front.core.put([FedPassage(id=NAME, title="", text=text)], Deadline.after(LONG), "me")


def calls(front: FedFront) -> list[int]:
    return [len(front.nodes[f"node-0:{n}"].batches) for n in (1, 2, 3)]


async def test_the_replica_that_worked_gets_the_next_writes(front: FedFront) -> None:
    """Not the first one again, which has lost its journal."""
    front.nodes["node-0:1"].fails = UnavailableError("it does not hear from its journal")
    await put(front, "one")
    assert calls(front) == [1, 1, 0]
    await put(front, "two")
    await put(front, "three")
    assert calls(front) == [1, 3, 0]


async def test_every_replica_is_tried_before_one_is_tried_again(front: FedFront) -> None:
    await put(front, "one")
    for address in ("node-0:1", "node-0:2"):
        front.nodes[address].fails = UnavailableError("it does not hear from its journal")
    await put(front, "two")
    assert calls(front) == [2, 1, 1]
    await put(front, "three")
    assert calls(front) == [2, 1, 2]


async def test_a_replica_that_left_is_not_asked_though_it_worked(front: FedFront) -> None:
    await put(front, "one")
    front.view = ClusterView(
        front.view.identity, {**front.view.replicas, 0: ("node-0:2", "node-0:3")}
    )
    await put(front, "two")
    assert calls(front) == [1, 1, 0]


async def test_replicas_that_are_about_to_follow_are_waited_for(front: FedFront) -> None:
    """FAILED_PRECONDITION would end a feed that needs only a moment."""
    followed = dict(front.infos)
    for address in ("node-0:1", "node-0:2", "node-0:3"):
        front.infos[address] = replace(followed[address], log_id="")

    async def rest(_: float) -> None:
        front.infos.update(followed)

    front.storing._sleep = rest
    await put(front, "one")
    assert calls(front) == [1, 0, 0]


async def test_a_journal_that_never_comes_is_unavailable(front: FedFront) -> None:
    for address in ("node-0:1", "node-0:2", "node-0:3"):
        front.infos[address] = replace(front.infos[address], log_id="")
    deadline = Deadline.after(0.3, front.clock)
    with pytest.raises((UnavailableError, DeadlineExceededError), match="is the journal running"):
        await front.core.put([FedPassage(id=NAME, title="", text="one")], deadline, "me")
