"""The shards of a front, as the fronts before it call them."""

import pytest
from fakes import ENCODED, FakeSearcher, OneShardNode
from heard_nodes import Nodes

from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import MAX_FRONTS, NodeReport, ShardFault, ShardInfo
from winnow.errors import DeadlineExceededError, UnavailableError
from winnow.searcher import RequestedShard, Retrieved
from winnow.shard_writer import CountingShardWriter
from winnow.stateless.cluster.served_cluster import ServedCluster

SHARDS = (RequestedShard(0), RequestedShard(1))


def unwritable(_: int) -> CountingShardWriter:
    raise AssertionError


class Middle(Nodes):
    """A front over nodes with one shard each, which serves both shards to other fronts."""

    def __init__(self) -> None:
        super().__init__()
        self.served = ServedCluster(self.builder, self.found, unwritable, "encoding")
        self.requests = 0
        self.found.record_request = self._record_request

    def _record_request(self) -> None:
        self.requests += 1

    async def poll(self, other: "Middle") -> None:
        """Polls a front."""
        try:
            report = await other.served.report(Deadline.after(60, self.clock))
        except UnavailableError as error:
            self.miss("front", error)
        else:
            self.hear_report("front", report)

    async def infos(self) -> dict[int, ShardInfo]:
        """The reported shards."""
        report = await self.served.report(Deadline.after(60, self.clock))
        return {info.shard: info for info in report.infos}

    async def retrieve(self) -> list[Retrieved | Exception]:
        """Retrieves from both shards."""
        depth, deadline = RetrievalDepth(passages=1), Deadline.after(60, self.clock)
        return await self.served.retrieve(ENCODED, depth, SHARDS, deadline)


@pytest.fixture
def middle() -> Middle:
    front = Middle()
    front.hear("a", 0, log_id="log", sequence=5)
    front.hear("b", 1)
    return front


async def test_questions_of_other_fronts_have_its_nodes_polled_as_its_own_do(
    middle: Middle,
) -> None:
    """Else a node that hangs is found after several seconds, in which its calls wait."""
    await middle.retrieve()
    middle.served.searcher(0)
    assert middle.requests == 2


async def test_nodes_are_polled_often_while_the_fronts_before_it_poll_often(
    middle: Middle,
) -> None:
    """They may answer from their caches, which the reports vouch for."""
    for seconds in (0.5, 0.5, 5.0, 5.0):
        await middle.infos()
        middle.clock.advance(seconds)
    assert middle.requests == 2


async def test_a_shard_takes_writes_while_one_of_its_nodes_does(middle: Middle) -> None:
    """The copy of a moving shard is not told from its owner by its writes."""
    middle.hear("0", 0, log_id="log", sequence=5, writes_elsewhere=True, moves=1)
    assert not (await middle.infos())[0].writes_elsewhere
    middle.hear("a", 0, log_id="log", sequence=5, writes_elsewhere=True)
    info = (await middle.infos())[0]
    assert (info.writes_elsewhere, info.moves) == (True, 1)
    middle.hear("0", 0, log_id="log", sequence=5, moves=1)
    info = (await middle.infos())[0]
    assert (info.writes_elsewhere, info.moves) == (False, 1)


async def test_the_pace_of_a_shard_is_that_of_all_its_nodes_at_their_last_polls(
    middle: Middle,
) -> None:
    middle.hear("c", 0, log_id="log", sequence=5)
    assert (await middle.infos())[0].seconds_per_read == 0
    for address in "ac":
        middle.hear(address, 0, log_id="log", sequence=5, seconds_per_read=0.2)
    assert (await middle.infos())[0].seconds_per_read == pytest.approx(0.1)


async def test_a_node_that_hangs_until_its_deadline_leaves_time_to_reply(middle: Middle) -> None:
    deadlines = []

    class Late(FakeSearcher):
        async def retrieve(
            self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
        ) -> Retrieved:
            deadlines.append(deadline)
            raise DeadlineExceededError

    middle.found.nodes["a"].content = OneShardNode(Late([]))
    late, found = await middle.retrieve()
    assert isinstance(late, DeadlineExceededError)
    assert isinstance(found, Retrieved)
    assert deadlines[0].left() < 60


async def test_fronts_that_use_each_other_do_not_report_the_shards_of_a_node_that_is_gone(
    middle: Middle,
) -> None:
    other = Middle()
    for _ in range(3):
        await other.poll(middle)
        await middle.poll(other)
    assert sorted(await other.infos()) == [0, 1]
    middle.miss("a", UnavailableError("a: connection refused"))
    for _ in range(2 * MAX_FRONTS):
        await other.poll(middle)
        await middle.poll(other)
    assert sorted(await middle.infos()) == sorted(await other.infos()) == [1]


async def test_a_shard_that_loads_is_told_from_one_whose_nodes_do_not_reply(
    middle: Middle,
) -> None:
    middle.miss("a", UnavailableError("a: connection refused"))
    middle.hear_report("b", NodeReport(faults=(ShardFault(1, UnavailableError("it loads")),)))
    report = await middle.served.report(Deadline.after(60, middle.clock))
    assert {each.shard: each.is_unreachable for each in report.faults} == {0: True, 1: False}
