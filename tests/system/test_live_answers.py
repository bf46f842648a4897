"""Clusters of processes that answer while they take writes: caching, coverage and scores."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
from conftest import PASSAGES, QUESTIONS, Recorder
from tenacious import until

from winnow.bundle import Bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client import Client, PassageFields, Position, Reply, ShardStatus
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.errors import DeadlineExceededError
from winnow.packaged import default_bundle

ASKED = "Who won the Zorblax Prize in 2031?"
WON: PassageFields = {
    "id": "zorblax",
    "title": "Zorblax Prize",
    "text": "The Zorblax Prize of 2031 was won by Marta Quendelheim of Lower Fnord.",
}


class Start(Protocol):
    """Starts a cluster with this number of shards that takes writes."""

    def __call__(self, shards: int, built: Path | None = None) -> LocalCluster: ...


@pytest.fixture
def start(indexes: dict[int, Path], tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def started(shards: int, built: Path | None = None) -> LocalCluster:
            index = tmp_path / f"index-{shards}"
            shutil.copytree(built or indexes[shards], index)
            plan = LocalPlan(index, default_bundle(), "127.0.0.1:0", feed_listen="127.0.0.1:0")
            made = stack.enter_context(LocalCluster(plan))
            made.start()
            asyncio.run(made.wait_ready())
            return made

        yield started


def ids(reply: Reply) -> list[str]:
    return [each.passage.id for each in reply.answers]


def test_a_cached_answer_is_not_returned_after_a_write(start: Start) -> None:
    cluster = start(2)
    with Client(cluster.feed) as feeding, Client(cluster.address) as asking:
        first = asking.ask(ASKED, max_loss=0)
        assert [part.sequence for part in first.coverage.shards] == [0, 0]
        (put,) = feeding.put(WON)
        after = asking.ask(ASKED, max_loss=0)
        assert not after.cached
        assert ids(after)[0] == "zorblax"
        assert after.coverage.shards[put.position.shard].sequence == put.position.sequence == 1
        (deleted,) = feeding.delete("zorblax")
        gone = asking.ask(ASKED, max_loss=0)
        assert not gone.cached
        assert "zorblax" not in ids(gone)
        assert asking.ask(ASKED, max_loss=0, after=[deleted.position]).coverage.complete


def test_coverage_counts_the_current_passages(start: Start) -> None:
    cluster = start(2)
    with Client(cluster.feed) as feeding, Client(cluster.address) as asking:
        before = asking.ask(ASKED).coverage.known

        def known() -> int:
            coverage = asking.ask(ASKED).coverage
            assert coverage.known == coverage.searched
            return coverage.known

        feeding.put([{**WON, "id": f"z{n}"} for n in range(5)])
        until(lambda: known() == before + 5, 30)
        feeding.delete(["z0", "z1"])
        until(lambda: known() == before + 3, 30)


def test_a_question_after_a_future_write_times_out_at_its_shard(start: Start) -> None:
    cluster = start(2)
    with Client(cluster.address) as asking:
        reply = asking.ask(ASKED, timeout=5, after=[Position(1, 10**6)])
        assert [part.status for part in reply.coverage.shards] == [
            ShardStatus.SEARCHED,
            ShardStatus.TIMEOUT,
        ]
        assert "waited for write 1000000, got write 0" in reply.coverage.shards[1].reason
        with pytest.raises(DeadlineExceededError, match="waited for write 7"):
            asking.ask(ASKED, timeout=5, after=[Position(0, 7), Position(1, 7)])


def test_after_writes_end_fed_passages_score_as_built_ones(
    start: Start, bundle: Bundle, recorder: Recorder, tmp_path: Path
) -> None:
    """The answers do not depend on the number of shards or on earlier writes."""
    fed: list[PassageFields] = [
        {"id": f"p{n}", "title": f"Prize {n}", "text": f"The prize of {2000 + n} went to Ib {n}."}
        for n in range(40)
    ]
    rows = [{"id": i, "title": title, "text": text} for i, title, text in PASSAGES] + fed
    file = tmp_path / "all.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    build_index(
        BuildPlan(source=file, target=tmp_path / "all", shards=1, threads=2), bundle, recorder
    )
    built, live = start(1, tmp_path / "all"), start(2)
    with Client(live.feed) as feeding:
        feeding.put([{**each, "id": f"gone {each['id']}"} for each in fed])
        feeding.put([{**each, "text": "something else"} for each in fed[::2]])
        feeding.put(fed)
        feeding.delete([f"gone {each['id']}" for each in fed])
    with Client(built.address) as one, Client(live.address) as other:

        def said(client: Client, question: str) -> list[object]:
            reply = client.ask(question, fresh=True, passages_to_read=5, max_loss=0)
            return [(a.passage.id, a.text, a.hybrid_distance, a.score) for a in reply.answers]

        for question in ("Who got the prize of 2007?", *(asked for asked, _ in QUESTIONS)):
            until(lambda asked=question: said(one, asked) == said(other, asked), 30)  # type: ignore[misc]
