"""Writes that a front forwards for the fronts before it."""

from fakes import FakeShardWriter
from fed_front import INDEX, node_info
from prometheus_client import CollectorRegistry
from tenacious import LATER

from winnow.domain.write import Write
from winnow.stateless.cluster.membership import ClusterView, IndexIdentity
from winnow.stateless.cluster.node import ReplicaAt
from winnow.stateless.feed.forwarding import ForwardingShardWriter
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.storing import WriteRouter
from winnow.stateless.feed.writers import OpenWriter, Writers

WRITES = [Write("id")]


class Middle:
    """A front over one shard, whose node may be replaced by another one."""

    def __init__(self) -> None:
        self.address = "first"
        self.opened: list[str] = []
        self.closed: list[str] = []
        writers = Writers(
            lambda: ClusterView(INDEX, {0: (self.address,)}),
            lambda: {ReplicaAt(self.address, 0): node_info(0, "log")},
            self._open,
        )
        router = WriteRouter(writers, FeedMetrics(CollectorRegistry()))
        self.writer = ForwardingShardWriter(0, router, writers, lambda _: ())

    def _open(self, address: str, index: IndexIdentity, shard: int) -> OpenWriter:
        async def close() -> None:
            self.closed.append(address)

        self.opened.append(address)
        return OpenWriter(FakeShardWriter(), lambda: False, close)


async def test_connections_to_nodes_that_have_left_are_closed() -> None:
    middle = Middle()
    await middle.writer.write(WRITES, LATER)
    middle.address = "second"
    await middle.writer.write(WRITES, LATER)
    assert (middle.opened, middle.closed) == (["first", "second"], ["first"])


async def test_no_writes_are_stored_without_an_error() -> None:
    assert await Middle().writer.write([], LATER) == []
