"""Several indexes on one cluster, chosen by name: nodes and a front that follow a catalog."""

import contextlib
import json
import time
from functools import partial
from pathlib import Path

import httpx
import pytest
from conftest import QUESTIONS, Recorder
from named_cluster import NamedCluster, named_cluster
from tenacious import LONG, available, happens

from winnow.bundle import Bundle
from winnow.client import AsyncClient, PassageFields, Reply
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.errors import InvalidRequestError, NotFoundError, UnavailableError

OTHER = "Who won the Zorblax Prize in 2031?"


@pytest.fixture(scope="module")
def other_index(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of one shard, whose only passage answers `OTHER`."""
    root = tmp_path_factory.mktemp("other")
    passage = {"id": "prize", "text": "The Zorblax Prize of 2031 was won by Marta Quendelheim."}
    (root / "passages.jsonl").write_text(json.dumps(passage) + "\n")
    plan = BuildPlan(source=root / "passages.jsonl", target=root / "index", shards=1, threads=1)
    build_index(plan, bundle, Recorder())
    return root / "index"


@pytest.mark.bundle
async def test_each_request_is_of_the_index_that_it_names(
    indexes: dict[int, Path], other_index: Path, tmp_path: Path
) -> None:
    """Questions, passages, writes and HTTP; an answer names its index."""
    question, wanted = QUESTIONS[0]
    async with named_cluster(tmp_path, docs=indexes[2], prizes=other_index) as cluster:
        docs, prizes = await cluster.ask(question, "docs"), await cluster.ask(OTHER, "prizes")
        assert (docs.answers[0].text, docs.index) == (wanted, "docs")
        assert (prizes.answers[0].text, prizes.index) == ("Marta Quendelheim", "prizes")
        assert {each.passage.id for each in (await cluster.ask(question, "prizes")).answers} == {
            "prize"
        }
        with pytest.raises(NotFoundError, match="there is no index 'others'"):
            await cluster.ask(question, "others")
        with pytest.raises(NotFoundError, match="there is no index default: name one"):
            await cluster.ask(question)
        async with AsyncClient(cluster.feed, index="prizes") as feeding:
            new: PassageFields = {"id": "new", "text": "The Zorblax Prize of 2032 went to Ann."}
            (written,) = await feeding.put([new])
            assert await feeding.count_passages(after=[written.position]) == 2
        after = [written.position]
        async with AsyncClient(cluster.client.address, index="docs") as client:
            with pytest.raises(InvalidRequestError, match="is of index prizes, but the request is"):
                await client.ask(question, after=after, timeout=LONG)
        headers = {"x-winnow-timeout": str(LONG)}
        url = f"http://{cluster.http}"
        async with httpx.AsyncClient(base_url=url, timeout=LONG, headers=headers) as http:
            path = "/v1/indexes/prizes/passages:count"
            assert (await http.get(path)).json()["passages"] == "2"
            body = {"question": OTHER, "index": "docs"}
            wrong = await http.post("/v1/indexes/prizes/answer", json=body)
            assert wrong.json()["violations"][0]["field"] == "index"
            found = (await http.post("/v1/answer", json=body)).json()
            assert found["index"] == "docs"
        labels = {"index": "prizes", "shard": "0"}
        name = "winnow_front_index_passages"
        # the front learns it by its next poll
        await happens(lambda: cluster.registry.get_sample_value(name, labels) == 2)


@pytest.mark.bundle
async def test_an_alias_is_switched_and_a_dropped_index_comes_back(
    indexes: dict[int, Path], other_index: Path, tmp_path: Path
) -> None:
    """Without a name, requests are for the index or alias `default`."""
    async with named_cluster(tmp_path, docs=indexes[2], prizes=other_index) as cluster:

        async def default_is(name: str) -> Reply:
            async def asked() -> Reply:
                try:
                    reply = await cluster.ask(OTHER)
                except NotFoundError as error:
                    raise UnavailableError("not yet") from error
                if reply.index != name:
                    raise UnavailableError("not yet")
                return reply

            return await available(asked, LONG)

        cluster.change(lambda before: before.with_alias("default", "docs"))
        first = await default_is("docs")
        cluster.change(lambda before: before.with_alias("default", "prizes"))
        second = await default_is("prizes")
        assert second.answers[0].text == "Marta Quendelheim"
        assert (first.generation, second.generation) == (3, 4)
        cluster.change(lambda before: before.with_dropped("docs", time.time() + 3_600))
        await available(partial(_is_gone, cluster, "docs"), LONG)
        assert list(cluster.data.glob("index-*/shard-*-of-00002"))
        cluster.change(lambda before: before.with_restored("docs", time.time()))
        question, wanted = QUESTIONS[0]

        async def is_back() -> Reply:
            try:
                return await cluster.ask(question, "docs")
            except NotFoundError as error:
                raise UnavailableError("not yet") from error

        assert (await available(is_back, LONG)).answers[0].text == wanted
        cluster.change(lambda before: before.with_dropped("docs", time.time()))
        await happens(partial(_has_no_shard, cluster.data, "-of-00002"))
        await happens(lambda: not _open_files(cluster.data, "-of-00002"))
        assert (await cluster.ask(OTHER)).answers[0].text == "Marta Quendelheim"


@pytest.mark.bundle
async def test_a_shard_of_a_named_index_moves_with_its_writes(
    indexes: dict[int, Path], other_index: Path, tmp_path: Path
) -> None:
    """Each node asks the others for the shards of the same index only."""
    async with named_cluster(tmp_path, "ab", docs=indexes[2], prizes=other_index) as cluster:
        first: PassageFields = {"id": "new", "text": "The Zorblax Prize of 2032 went to Ann."}
        later: PassageFields = {"id": "later", "text": "The Zorblax Prize of 2033 went to Bo."}
        async with AsyncClient(cluster.feed, index="prizes") as feeding:
            await feeding.put([first])
            cluster.change(lambda before: before.with_holders("prizes", {0: ("b",)}, before.nodes))
            await happens(lambda: bool(list((tmp_path / "b").glob("index-*/shard-*"))))
            await feeding.put([later])
            assert await feeding.count_passages() == 3
        question, wanted = QUESTIONS[0]
        assert (await cluster.ask(question, "docs")).answers[0].text == wanted
        assert (await cluster.ask(OTHER, "prizes")).answers[0].text == "Marta Quendelheim"
        assert not list((tmp_path / "b").glob("index-*/shard-*-of-00002"))


def _has_no_shard(data: Path, ending: str) -> bool:
    try:
        return not list(data.glob(f"index-*/shard-*{ending}"))
    except FileNotFoundError:  # a node removes a directory just now
        return False


def _open_files(data: Path, part: str) -> list[str]:
    """Lists the open files below `data` in whose path `part` occurs, also deleted ones."""
    paths = []
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.append(str(each.readlink()))
    return [path for path in paths if path.startswith(str(data)) and part in path]


async def _is_gone(cluster: NamedCluster, index: str) -> None:
    try:
        await cluster.ask(OTHER, index)
    except NotFoundError:
        return
    raise UnavailableError("not yet")
