"""A front over fake shards that hold passages."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

from fake_passages import FakePassages
from fakes import FakeSearcher, shard_info
from listening import listening
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LATER, LONG

from winnow.deadline import Deadline
from winnow.domain.partition import Partition
from winnow.domain.passage_request import PageRequest
from winnow.domain.question import ReadScope
from winnow.domain.shard import ShardInfo
from winnow.domain.write import Deletion, Outcome, Position, WriteResult
from winnow.errors import WinnowError
from winnow.inference.fair_threads import FairThreads
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.feed.fed_index import FedIndex, only_fed
from winnow.stateless.feed.filter_deletion import FilterDeletion
from winnow.stateless.feed.servicer import FeedServicer
from winnow.stateless.metrics import AdmissionMetrics
from winnow.stateless.passages.core import PassageCore, PassageIndex
from winnow.stateless.passages.servicer import SERVICE, PassageMessages, PassageServicer
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import feed_pb2_grpc, passage_pb2_grpc

DEFAULTS = QuestionDefaults(
    passages_to_read=3, answers=3, read_scope=ReadScope.GLOBAL, max_answer_tokens=10
)


class PassageFront:
    """A passage core over fake shards, which hold the passages that belong to them."""

    def __init__(self, shards: int = 3, ids: Iterable[str] = (), max_in_flight: int = 64) -> None:
        self.built = shards
        self.shards: dict[int, FakePassages] = {}
        load = ReadLoad(LoadSettings(max_reads=1000), ManualClock(), lambda: None)
        self.registry = CollectorRegistry()
        admission = Admission(load, max_in_flight, AdmissionMetrics(self.registry))
        self.calls = 0
        self.pauses: list[float] = []
        """The pauses of exports."""
        self.on_pause: Callable[[], None] = lambda: None
        self.core = PassageCore(DEFAULTS, admission, self._count, sleep=self._sleep)
        self.show(range(shards))
        for each in ids:
            self.put(each)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.on_pause()

    def _count(self) -> None:
        self.calls += 1

    def show(self, shards: Iterable[int]) -> None:
        """Serves these shards, which get the passages of the earlier shards."""
        held = [each for own in self.shards.values() for each in own.stored.values()]
        self.shards = {shard: FakePassages() for shard in shards}
        self.partition = Partition(self.built, tuple(self.shards))
        for passage in held:
            self.shards[self.partition.shard_of(passage.id)].stored[passage.id] = passage
        infos = {shard: self._info(shard) for shard in self.shards}
        searchers = {shard: FakeSearcher([], passages=own) for shard, own in self.shards.items()}
        self.cluster = Cluster(searchers, infos)
        self.core.set_index(PassageIndex(self.cluster, None))  # type: ignore[arg-type]

    def _info(self, shard: int) -> ShardInfo:
        return shard_info(
            shard, shards=self.built, generation="g", fields=("document", "lang"), log_id="log"
        )

    def put(self, identifier: str, **metadata: Any) -> None:
        self.shards[self.partition.shard_of(identifier)].put(identifier, **metadata)

    def delete(self, identifier: str) -> None:
        self.shards[self.partition.shard_of(identifier)].stored.pop(identifier, None)

    async def page(self, size: int, token: str = "", **options: object) -> tuple[list[str], str]:
        request = PageRequest(page_size=size, page_token=token, **options)  # type: ignore[arg-type]
        page = await self.core.page(request, LATER)
        return [each.id for each in page.passages], page.next_page_token

    @asynccontextmanager
    async def serving(self, feed: "FakeFeed | None" = None) -> AsyncIterator[str]:
        """Serves by gRPC; yields HOST:PORT. With `feed`, passages can be deleted by filter."""
        threads = FairThreads(1, "passages")
        server = Server(services=[SERVICE], interceptor=CallInterceptor(RpcMetrics(self.registry)))
        servicer = PassageServicer(PassageMessages(self.core, threads), LONG)
        passage_pb2_grpc.add_PassageServiceServicer_to_server(servicer, server.grpc)
        if feed is not None:
            deletion = FilterDeletion(self.core, feed)  # type: ignore[arg-type]
            feeder = FeedServicer(only_fed(FedIndex(feed, deletion)), LONG)  # type: ignore[arg-type]
            feed_pb2_grpc.add_FeedServiceServicer_to_server(feeder, server.grpc)
        with closing(threads):
            async with listening(server) as address:
                yield address


@dataclass
class FakeFeed:
    """Deletes passages from fake shards."""

    front: PassageFront
    batches: list[int] = field(default_factory=list)
    fails: WinnowError | None = None
    clock: ManualClock = field(default_factory=ManualClock)
    seconds: float = 0.0
    """Seconds that a call takes."""

    async def delete(
        self, deletions: Sequence[Deletion], deadline: Deadline, client: str = ""
    ) -> list[WriteResult]:
        self.clock.now += self.seconds
        if self.fails is not None and self.batches:
            raise self.fails
        self.batches.append(len(deletions))
        for each in deletions:
            self.front.delete(each.id)
        sequence = sum(self.batches)
        return [WriteResult(each.id, Outcome.STORED, Position(0, sequence)) for each in deletions]
