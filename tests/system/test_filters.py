"""Filters, over gRPC and with the real models."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import PASSAGES, QUESTIONS, Recorder
from google.protobuf.json_format import MessageToDict
from whole_cluster import Running, running

from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.errors import WinnowError
from winnow.filtering import parse
from winnow.v1 import answer_pb2

TIMEOUT = 240.0
pytestmark = pytest.mark.timeout(600)
METADATA: dict[str, dict[str, Any]] = {
    "tour": {"year": 2015, "tags": ["sport", "cycling"], "published": "2015-07-26"},
    "nibali": {"year": 2014, "tags": ["sport", "cycling"], "author": {"name": "Ann"}},
    "danube": {"length": 2850.5, "tags": "river", "draft": False},
    "everest": {"year": "1975", "height": 8848.86},
    "penicillin": {"year": 1928, "tags": [], "draft": True},
    "moon": {"year": [1969, 1970], "published": "1969-07-21T02:56:15Z"},
}
FILTERS = [
    "year >= 1969",
    'tags = "sport" and year < 2015',
    'tags in ("river", "cycling")',
    "not exists year",
    'year = "1975" or height > 8000',
    "draft = false",
    'published >= "2015-01-01"',
    'author.name = "Ann"',
    "tags != 'cycling'",
]


@pytest.fixture(scope="module")
def cut(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Indexes of the same passages with metadata, in one shard and in three."""
    place = tmp_path_factory.mktemp("filtered")
    rows = [
        {"id": i, "title": title, "text": text, "metadata": METADATA.get(i, {})}
        for i, title, text in PASSAGES
    ]
    source = place / "passages.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for shards in (1, 3):
        build_index(
            BuildPlan(source=source, target=place / str(shards), shards=shards, threads=2),
            bundle,
            Recorder(),
        )
    return {shards: place / str(shards) for shards in (1, 3)}


def asked(question: str, where: str, **options: Any) -> answer_pb2.AnswerRequest:
    return answer_pb2.AnswerRequest(question=question, answers=100, filter=where, **options)


def essence(reply: answer_pb2.AnswerResponse) -> list[tuple[Any, ...]]:
    return [(a.text, a.passage.id, a.score, a.distance, a.hybrid_distance) for a in reply.answers]


def let_through(where: str) -> set[str]:
    wanted = parse(where)
    return {i for i, _, _ in PASSAGES if wanted.matches(METADATA.get(i, {}))}


async def ask_all(cluster: Running, **options: Any) -> Mapping[str, list[Any]]:
    """One question with every filter: the question does not change what a filter matches."""
    found = {}
    for where in FILTERS:
        request = asked(QUESTIONS[0][0], where, passages_to_read=12, **options)
        reply = await cluster.client.ask(request, TIMEOUT)
        assert reply.coverage.complete
        assert {a.passage.id for a in reply.answers} == let_through(where), where
        found[where] = essence(reply)
    return found


@pytest.mark.parametrize("retriever", ["DENSE", "HYBRID"])
async def test_only_matching_passages_answer_for_any_number_of_shards(
    bundle: Bundle, cut: dict[int, Path], retriever: str
) -> None:
    """Every passage is read, so no matching one is missing."""
    chosen = answer_pb2.Retriever.Value(f"RETRIEVER_{retriever}")
    seen = []
    for index in cut.values():
        async with running(index, bundle) as cluster:
            seen.append(await ask_all(cluster, retriever=chosen))
    assert seen[0] == seen[1]


async def test_each_shard_reads_its_best_matching_passages(
    bundle: Bundle, cut: dict[int, Path]
) -> None:
    async with running(cut[3], bundle) as cluster:
        await ask_all(cluster, read_scope=answer_pb2.READ_SCOPE_PER_SHARD)


@pytest.mark.parametrize("scope", [answer_pb2.READ_SCOPE_GLOBAL, answer_pb2.READ_SCOPE_PER_SHARD])
@pytest.mark.parametrize("options", [{}, {"max_loss": 0.0, "partial_results": 2}])
async def test_a_filter_without_matches_has_no_answer_and_complete_coverage(
    bundle: Bundle,
    cut: dict[int, Path],
    scope: answer_pb2.ReadScope.ValueType,
    options: dict[str, Any],
) -> None:
    async with running(cut[3], bundle) as cluster:
        request = asked("Who?", "year > 3000", read_scope=scope, **options)
        reply = await cluster.client.ask(request, TIMEOUT)
        assert (list(reply.answers), reply.has_answer, reply.passages_read) == ([], False, 0)
        assert reply.coverage.complete
        assert reply.coverage.passages_searched == len(PASSAGES)


async def test_a_field_of_one_shard_is_valid_and_an_unknown_field_is_an_error(
    bundle: Bundle, cut: dict[int, Path]
) -> None:
    async with running(cut[3], bundle) as cluster:
        reply = await cluster.client.ask(asked("Which author?", "author.name = 'Ann'"), TIMEOUT)
        assert [answer.passage.id for answer in reply.answers] == ["nibali"]
        said = "INVALID_ARGUMENT: filter: there is no field 'auhtor.name': known are author.name, "
        with pytest.raises(WinnowError, match=said) as caught:
            await cluster.client.ask(asked("Who?", "auhtor.name = 'Ann'"), TIMEOUT)
        assert all(name in str(caught.value) for name in ("year", "tags", "published"))


async def test_a_cached_answer_is_used_only_for_its_filter(
    bundle: Bundle, cut: dict[int, Path]
) -> None:
    async with running(cut[1], bundle) as cluster:

        async def ask(where: str) -> answer_pb2.AnswerResponse:
            return await cluster.client.ask(asked("Who won the Tour de France?", where), TIMEOUT)

        first, again = await ask("year = 2014"), await ask("(year=2014.0)")
        other, all_of_them = await ask("year = 2015"), await ask("")
    assert [each.cached for each in (first, again, other, all_of_them)] == [
        False,
        True,
        False,
        False,
    ]
    assert essence(first) == essence(again)
    assert [a.passage.id for a in (*first.answers, *other.answers)] == ["nibali", "tour"]
    assert MessageToDict(other.answers[0].passage.metadata) == METADATA["tour"]
