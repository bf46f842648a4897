"""Invariants of the whole system, over gRPC and with the real models."""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import QUESTIONS, Recorder
from tenacious import turn
from whole_bundle import WHOLE
from whole_cluster import Running, running

from winnow.bundle import Bundle, load_bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.states.index import write_states
from winnow.deadline import Deadline
from winnow.errors import WinnowError
from winnow.index_directory import shard_directories
from winnow.v1 import answer_pb2

TIMEOUT = 240.0
"""Timeout in seconds; long, because the machine may be busy."""
DEPTHS: tuple[dict[str, Any], ...] = (
    {"passages_to_read": 5},
    {"passages_to_read": 5, "retriever": answer_pb2.RETRIEVER_DENSE},
    {"passages_to_read": 5, "retriever": answer_pb2.RETRIEVER_SPARSE},
    {"passages_to_read": 10, "max_loss": 1.0},
    {"passages_to_read": 10, "max_loss": 0.1},
)
"""All that is asked for, or what is enough: by reading ahead more is read while readers are idle,
which must not be seen.
"""
HYBRID = (DEPTHS[0], DEPTHS[-1])
"""Without the retrievers, for what changes only how passages are read."""
TWO = QUESTIONS[:2]
"""Enough for comparisons: a question changes only which of the same passages are read."""
pytestmark = pytest.mark.timeout(600)


def asked(question: str, **options: Any) -> answer_pb2.AnswerRequest:
    return answer_pb2.AnswerRequest(question=question, answers=100, **options)


def essence(reply: answer_pb2.AnswerResponse) -> list[tuple[Any, ...]]:
    answers = [
        (
            *(a.text, a.start, a.passage.id, a.score, a.relevance, a.confidence),
            *(a.distance, a.hybrid_distance, a.words),
        )
        for a in reply.answers
    ]
    return [(reply.passages_needed,), *answers]


async def complete(
    cluster: Running, request: answer_pb2.AnswerRequest
) -> answer_pb2.AnswerResponse:
    """The reply of all shards: one that gets no processor for a while is left out of some."""
    while not (reply := await cluster.client.ask(request, TIMEOUT)).coverage.complete:
        pass
    return reply


@pytest.mark.parametrize(
    ("words", "depths"),
    [
        (0, DEPTHS),
        (3, HYBRID),  # only hybrid retrieval also ranks the best passages by words
    ],
)
async def test_sharding_changes_no_answer_and_no_score(
    bundle: Bundle, indexes: dict[int, Path], words: int, depths: tuple[dict[str, Any], ...]
) -> None:
    """Three shards cut the passages unevenly; each of eight has fewer than are read."""
    seen: dict[int, list[Any]] = {}
    for shards in (1, 3, 8):
        async with running(indexes[shards], bundle, word_candidates=words) as cluster:
            seen[shards] = [
                essence(await complete(cluster, asked(q, **options)))
                for q, _ in TWO
                for options in depths
            ]
    assert len(seen[1][0]) == 1 + 5
    assert seen[3] == seen[1]
    assert seen[8] == seen[1]


async def test_sharding_changes_no_answer_of_a_full_cross_encoder(indexes: dict[int, Path]) -> None:
    """The indexes were built with the default bundle, which has the same encoder."""
    whole, seen = load_bundle(WHOLE), []
    for index in (indexes[1], indexes[3]):
        async with running(index, whole) as cluster:
            seen.append(
                [
                    essence(await complete(cluster, asked(q, **options)))
                    for q, _ in TWO
                    for options in HYBRID
                ]
            )
    assert seen[0] == seen[1]


async def test_states_change_no_answer(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path
) -> None:
    index = tmp_path / "index"
    shutil.copytree(indexes[3], index)
    write_states(index, bundle, 2, Recorder())
    for shard in shard_directories(index):
        segment = open_shard(
            shard, ef=64, lower_layers_fingerprint=bundle.manifest.lower_layers_fingerprint
        )
        assert segment.states is not None
    seen = []
    for place in (index, indexes[3]):
        async with running(place, bundle) as cluster:
            replies = [
                await complete(cluster, asked(q, **options))
                for q, _ in QUESTIONS
                for options in HYBRID
            ]
        assert [reply.answers[0].text for reply in replies[:: len(HYBRID)]] == [
            a for _, a in QUESTIONS
        ]
        seen.append(list(map(essence, replies)))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("fresh", [True, False], ids=["all read", "known answers given again"])
async def test_concurrent_questions_change_no_answer(
    bundle: Bundle, indexes: dict[int, Path], fresh: bool
) -> None:
    async with running(indexes[2], bundle) as cluster:
        alone = [
            essence(await complete(cluster, asked(q, fresh=True, **options)))
            for q, _ in TWO
            for options in DEPTHS
        ]
        crowd = await asyncio.gather(
            *(
                complete(cluster, asked(q, fresh=fresh, **options))
                for _ in range(2)
                for q, _ in TWO
                for options in DEPTHS
            )
        )
    assert [essence(reply) for reply in crowd] == alone * 2
    assert any(reply.cached for reply in crowd) == (not fresh)


async def test_a_cached_answer_is_bit_for_bit_the_original(
    bundle: Bundle, indexes: dict[int, Path]
) -> None:
    def all_that_is_said(reply: answer_pb2.AnswerResponse) -> bytes:
        for field in ("timings", "request_id", "passages_read", "cached"):
            reply.ClearField(field)
        return reply.SerializeToString(deterministic=True)

    async with running(indexes[3], bundle) as cluster:
        for text, _ in TWO:
            for options in DEPTHS:
                read, spelled = asked(text, fresh=True, **options), asked(text.upper(), **options)
                fresh = await complete(cluster, read)
                first = await complete(cluster, asked(text, **options))
                known = await cluster.client.ask(spelled, TIMEOUT)
                assert (fresh.cached, first.cached, known.cached) == (False, False, True)
                assert (known.passages_read, known.timings.read_ms) == (0, 0)
                assert known.timings.total_ms > 0
                assert len(set(map(all_that_is_said, (fresh, first, known)))) == 1


async def test_a_changed_index_invalidates_cached_answers(
    bundle: Bundle, passages_file: Path, tmp_path: Path, indexes: dict[int, Path], recorder: Any
) -> None:
    text = passages_file.read_text(encoding="utf-8").replace("Alexander Fleming", "Howard Florey")
    changed = tmp_path / "changed.jsonl"
    changed.write_text(text, encoding="utf-8")
    build_index(
        BuildPlan(source=changed, target=tmp_path / "changed", shards=1, threads=2),
        bundle,
        recorder,
    )
    rows = view_of(open_shard(shard_directories(tmp_path / "changed")[0], 128, True))
    request = asked("Who discovered penicillin?", passages_to_read=5)
    async with running(indexes[1], bundle) as cluster:

        async def said() -> str:
            return (await cluster.client.ask(request, TIMEOUT)).answers[0].text

        assert [await said(), await said()] == ["Alexander Fleming"] * 2
        served = (await cluster.nodes[0].searcher.info(Deadline.after(TIMEOUT))).index_id
        manifest = rows.manifest.model_copy(update={"index_id": served})
        cluster.nodes[0].searcher.set_view(replace(rows, manifest=manifest))
        async with asyncio.timeout(TIMEOUT):  # until the front has looked at the node
            while await said() == "Alexander Fleming":
                await turn()
        replies = [await cluster.client.ask(request, TIMEOUT) for _ in range(2)]
        assert {reply.answers[0].text for reply in replies} == {"Howard Florey"}
        assert replies[-1].cached
        looks = {"result": "hit"}
        assert cluster.registry.get_sample_value("winnow_front_answer_cache_total", looks)
        assert cluster.registry.get_sample_value("winnow_front_answer_cache_bytes")


@pytest.mark.parametrize("scope", [answer_pb2.READ_SCOPE_GLOBAL, answer_pb2.READ_SCOPE_PER_SHARD])
async def test_plain_questions_are_answered_with_the_words_of_the_passage(
    bundle: Bundle, indexes: dict[int, Path], scope: answer_pb2.ReadScope.ValueType
) -> None:
    async with running(indexes[3], bundle, exact=False) as cluster:
        for question, expected in QUESTIONS:
            reply = await cluster.client.ask(asked(question, read_scope=scope), TIMEOUT)
            assert reply.answers[0].text == expected
            assert reply.read_scope == scope
            assert reply.coverage.complete
            for answer in reply.answers:
                assert answer.text == answer.passage.text[answer.start : answer.end]


@pytest.mark.parametrize(
    "question", ["Who wrote Rusalka?", "café? 🎻 Zoë", "e\u0301" * 300, "a\x00b"]
)
async def test_answers_are_exact_substrings_for_any_question(
    bundle: Bundle, indexes: dict[int, Path], question: str
) -> None:
    async with running(indexes[1], bundle) as cluster:
        reply = await cluster.client.ask(asked(question, passages_to_read=12), TIMEOUT)
    assert reply.answers
    for answer in reply.answers:
        assert answer.text == answer.passage.text[answer.start : answer.end]


async def test_a_stopped_shard_lowers_coverage_and_is_reported(
    bundle: Bundle, indexes: dict[int, Path]
) -> None:
    async with running(indexes[3], bundle) as cluster:
        await cluster.nodes[1].server.drain(0)
        reply = await cluster.client.ask(asked("Who discovered penicillin?"), TIMEOUT)
        coverage = reply.coverage
        assert not coverage.complete
        assert coverage.passages_known == coverage.passages_searched + coverage.passages_failed
        assert 0 < coverage.passages_failed < coverage.passages_known
        failed = [s for s in coverage.shards if s.reason]
        assert [s.shard for s in failed] == [1]
        assert failed[0].status == answer_pb2.ShardCoverage.STATUS_UNAVAILABLE


@pytest.mark.parametrize("scope", [answer_pb2.READ_SCOPE_GLOBAL, answer_pb2.READ_SCOPE_PER_SHARD])
@pytest.mark.parametrize("least", [0.0, 0.001, 0.3])
async def test_a_question_that_hardly_waits_for_shards_still_has_an_answer(
    bundle: Bundle, indexes: dict[int, Path], least: float, scope: answer_pb2.ReadScope.ValueType
) -> None:
    patience = {"min_coverage": least, "min_wait_factor": 0.0, "max_wait_factor": 0.0}
    async with running(indexes[8], bundle) as cluster:
        for text, _ in TWO:
            reply = await cluster.client.ask(asked(text, read_scope=scope, **patience), TIMEOUT)
            assert reply.answers


async def test_all_shards_stopped_is_unavailable(bundle: Bundle, indexes: dict[int, Path]) -> None:
    async with running(indexes[2], bundle) as cluster:
        for node in cluster.nodes:
            await node.server.drain(0)
        with pytest.raises(WinnowError, match="UNAVAILABLE: no shard gave an answer"):
            await cluster.client.ask(asked("Who?"), TIMEOUT)


async def test_an_expired_question_is_refused_and_frees_the_threads(
    bundle: Bundle, indexes: dict[int, Path]
) -> None:
    async with running(indexes[1], bundle) as cluster:
        with pytest.raises(WinnowError, match="DEADLINE_EXCEEDED"):
            await cluster.client.ask(asked("Who?", passages_to_read=12), 0.002)
        reply = await cluster.client.ask(asked("Who discovered penicillin?"), TIMEOUT)
        assert reply.answers[0].text == "Alexander Fleming"


async def test_every_stage_is_timed_on_the_front_and_on_each_shard(
    bundle: Bundle, indexes: dict[int, Path]
) -> None:
    async with running(indexes[2], bundle) as cluster:
        reply = await cluster.client.ask(asked("Who discovered penicillin?"), TIMEOUT)
        stage = "winnow_front_stage_seconds_count"
        for name in ("queue", "tokenise", "encode", "retrieve", "read", "merge"):
            assert cluster.registry.get_sample_value(stage, {"stage": name}) == 1
        for node in cluster.nodes:
            labels = {"stage": "read"}
            assert node.registry.get_sample_value("winnow_node_stage_seconds_count", labels) == 1
    timings = reply.timings
    assert timings.total_ms >= timings.read_ms > 0
    assert timings.encode_ms > 0
    assert [shard.shard for shard in timings.shards] == [0, 1]
    assert all(shard.retrieve_ms > 0 for shard in timings.shards)
    assert timings.retrieve_start_ms < timings.read_start_ms < timings.merge_start_ms


async def test_every_call_and_read_has_its_start_within_the_question(
    bundle: Bundle, indexes: dict[int, Path]
) -> None:
    async with running(indexes[2], bundle) as cluster:
        reply = await cluster.client.ask(asked("Who discovered penicillin?"), TIMEOUT)
    whole, calls = reply.timings.total_ms, reply.timings.calls
    assert all(0 < each.start_ms < each.start_ms + each.ms <= whole for each in calls)
    retrievals = [each for each in calls if each.kind == answer_pb2.ShardCall.KIND_RETRIEVE]
    assert sorted(each.shard for each in retrievals) == [0, 1]
    for each in retrievals:
        assert each.start_ms <= each.retrieve_start_ms
        assert each.retrieve_start_ms + each.retrieve_ms <= each.start_ms + each.ms
    reads = [(each, read) for each in calls for read in each.reads]
    assert len({read.passage_id for _, read in reads}) == len(reads) == reply.passages_read
    margin = 0.01  # of single precision
    for each, read in reads:
        assert each.start_ms - margin <= read.start_ms
        assert read.start_ms + read.ms <= each.start_ms + each.ms + margin
