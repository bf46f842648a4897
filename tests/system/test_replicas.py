"""Replicas that leave, over gRPC."""

from pathlib import Path

import pytest
from tenacious import LONG
from whole_cluster import Running, running

from winnow.bundle import Bundle
from winnow.errors import UnavailableError
from winnow.v1 import answer_pb2

TIMEOUT = LONG
ASKED = answer_pb2.AnswerRequest(
    question="Who discovered penicillin?", passages_to_read=4, fresh=True
)


async def ask(cluster: Running) -> answer_pb2.AnswerResponse:
    return await cluster.client.ask(ASKED, TIMEOUT)


def replicas(cluster: Running, shard: int) -> float:
    labels = {"shard": str(shard)}
    return cluster.registry.get_sample_value("winnow_front_replicas", labels) or 0.0


async def test_all_answers_stay_complete_when_a_replica_leaves(
    bundle: Bundle, indexes: dict[int, Path]
) -> None:
    async with running(indexes[2], bundle, replicas=2) as cluster:
        before = await ask(cluster)
        await cluster.nodes[0].server.drain(0)
        replies = [await ask(cluster) for _ in range(5)]
        assert all(reply.coverage.complete for reply in replies)
        assert {reply.answers[0].text for reply in replies} == {before.answers[0].text}
        await cluster.change.when(lambda: replicas(cluster, 0) == 1)
        assert replicas(cluster, 1) == 2
        assert (await ask(cluster)).coverage.complete


async def test_a_shard_without_replicas_is_reported_as_unavailable(
    bundle: Bundle, indexes: dict[int, Path]
) -> None:
    async with running(indexes[2], bundle) as cluster:
        known = (await ask(cluster)).coverage.passages_known
        await cluster.nodes[1].server.drain(0)
        await cluster.change.when(lambda: replicas(cluster, 1) == 0)
        coverage = (await ask(cluster)).coverage
        assert coverage.passages_known == known
        assert coverage.shards[1].status == answer_pb2.ShardCoverage.STATUS_UNAVAILABLE
        assert coverage.shards[1].reason == "none of its replicas could be reached"
        assert not coverage.complete
        whole = answer_pb2.AnswerRequest()
        whole.CopyFrom(ASKED)
        whole.partial_results = answer_pb2.PARTIAL_RESULTS_FORBID
        with pytest.raises(
            UnavailableError, match="shard 1: none of its replicas could be reached"
        ):
            await cluster.client.ask(whole, TIMEOUT)
