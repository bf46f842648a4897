"""Clusters of processes that answer while they take writes: caching, coverage and scores."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PASSAGES, QUESTIONS, Recorder
from fed_cluster import ASKED, WON, fed_cluster
from tenacious import until

from winnow.bundle import Bundle
from winnow.cli.local.cluster import LocalCluster
from winnow.client import Client, PassageFields, Position, Reply, ShardStatus
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.errors import DeadlineExceededError


@pytest.fixture(scope="module")
def cluster(
    indexes: dict[int, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """Serves two shards that take writes; each test deletes what it has fed.

    One process, because no test stops a node: `test_feed_cluster.py` has separate nodes.
    """
    with fed_cluster(indexes[2], tmp_path_factory.mktemp("live"), one_process=True) as made:
        yield made


def ids(reply: Reply) -> list[str]:
    return [each.passage.id for each in reply.answers]


def test_a_cached_answer_is_not_returned_after_a_write(cluster: LocalCluster) -> None:
    with Client(cluster.feed) as feeding, Client(cluster.address) as asking:
        first = asking.ask(ASKED, max_loss=0)
        before = [part.sequence for part in first.coverage.shards]
        (put,) = feeding.put(WON)
        after = asking.ask(ASKED, max_loss=0)
        assert not after.cached
        assert ids(after)[0] == "zorblax"
        shard = put.position.shard
        assert after.coverage.shards[shard].sequence == put.position.sequence
        assert before[shard] == put.position.sequence - 1
        (deleted,) = feeding.delete("zorblax")
        gone = asking.ask(ASKED, max_loss=0)
        assert not gone.cached
        assert "zorblax" not in ids(gone)
        assert asking.ask(ASKED, max_loss=0, after=[deleted.position]).coverage.complete


def test_coverage_counts_the_current_passages(cluster: LocalCluster) -> None:
    with Client(cluster.feed) as feeding, Client(cluster.address) as asking:
        before = asking.ask(ASKED).coverage.known

        def known() -> int:
            coverage = asking.ask(ASKED).coverage
            assert coverage.known == coverage.searched
            return coverage.known

        feeding.put([{**WON, "id": f"z{n}"} for n in range(5)])
        until(lambda: known() == before + 5)
        feeding.delete(["z0", "z1"])
        until(lambda: known() == before + 3)
        feeding.delete(["z2", "z3", "z4"])
        until(lambda: known() == before)


def test_a_question_after_a_future_write_times_out_at_its_shard(cluster: LocalCluster) -> None:
    with Client(cluster.address) as asking:
        last = asking.ask(ASKED).coverage.shards[1].sequence
        reply = asking.ask(ASKED, timeout=20, after=[Position(1, 10**6)])
        assert [part.status for part in reply.coverage.shards] == [
            ShardStatus.SEARCHED,
            ShardStatus.TIMEOUT,
        ]
        waited = f"waited for write 1000000, but the shard has only write {last}"
        assert waited in reply.coverage.shards[1].reason
        with pytest.raises(DeadlineExceededError, match="waited for write 700"):
            asking.ask(ASKED, timeout=20, after=[Position(0, 700), Position(1, 700)])


def test_after_writes_end_fed_passages_score_as_built_ones(
    cluster: LocalCluster, bundle: Bundle, recorder: Recorder, tmp_path: Path
) -> None:
    """The answers do not depend on the number of shards or on earlier writes."""
    fed: list[PassageFields] = [
        {"id": f"p{n}", "title": f"Prize {n}", "text": f"The prize of {2000 + n} went to Ib {n}."}
        for n in range(20)
    ]
    rows = [{"id": i, "title": title, "text": text} for i, title, text in PASSAGES] + fed
    file = tmp_path / "all.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    build_index(
        BuildPlan(source=file, target=tmp_path / "all", shards=1, threads=2), bundle, recorder
    )
    with Client(cluster.feed) as feeding:
        feeding.put([{**each, "id": f"gone {each['id']}"} for each in fed])
        feeding.put([{**each, "text": "something else"} for each in fed[::2]])
        feeding.put(fed)
        feeding.delete([f"gone {each['id']}" for each in fed])
    with (
        fed_cluster(tmp_path / "all", tmp_path, one_process=True) as built,
        Client(built.address) as one,
        Client(cluster.address) as other,
    ):
        for question in ("Who got the prize of 2007?", *(asked for asked, _ in QUESTIONS)):
            expected = said(one, question)
            until(lambda asked=question, of=expected: said(other, asked) == of)  # type: ignore[misc]
    with Client(cluster.feed) as feeding:
        feeding.delete([each["id"] for each in fed])


def said(client: Client, question: str) -> list[object]:
    reply = client.ask(question, fresh=True, passages_to_read=5, max_loss=0)
    return [(a.passage.id, a.text, a.hybrid_distance, a.score) for a in reply.answers]
