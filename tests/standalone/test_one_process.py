"""A front node with all shards of an index in one process."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import QUESTIONS
from damaged_files import flip_bit
from prometheus_client import CollectorRegistry
from running_processes import Run, running
from tenacious import LONG

import winnow.content_node.__main__ as node
import winnow.standalone.__main__ as standalone
import winnow.stateless.__main__ as front
from winnow.cli.local.ports import free_ports
from winnow.client import AsyncClient, Options, PassageFields, Reply, ShardStatus
from winnow.content_node.settings import NodeSettings
from winnow.errors import ArtefactError
from winnow.index_directory import shard_directories
from winnow.settings.errors import SettingsError
from winnow.standalone.settings import StandaloneSettings
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.tracing.tracer import NO_TRACER

FEW: Options = {"max_loss": 0, "passages_to_read": 3}
"""Few enough passages to be read however busy the machine is."""
ASKED = "Who won the Zorblax Prize in 2031?"
WON: PassageFields = {
    "id": "zorblax",
    "title": "Zorblax Prize",
    "text": "The Zorblax Prize of 2031 was won by Marta Quendelheim.",
}


def one_process(index: Path, registry: CollectorRegistry, **given: str) -> tuple[Run, str]:
    """A process that serves an index, and its address."""
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    settings = StandaloneSettings.load({"index": index, "listen": listen, **given}, None, {})
    return lambda: standalone._run(settings, registry, NO_TRACER), listen


def cluster(*shards: Sequence[Path]) -> tuple[list[Run], str]:
    """A front node over content nodes with these shards, and the front's address."""
    listen, *nodes = (f"127.0.0.1:{port}" for port in free_ports(len(shards) + 1))
    # a busy machine is no lost node, and a node that still loads is no missing one
    patient = {"poll_timeout": LONG, "form_timeout": LONG}
    settings = FrontSettings.load({"shards": nodes, "listen": listen, **patient}, None, {})

    def serving(own: Sequence[Path], address: str) -> Run:
        settings = NodeSettings.load({"shard": own, "listen": address}, None, {})
        return lambda: node._run(settings, CollectorRegistry(), NO_TRACER)

    runs: list[Run] = [serving(*pair) for pair in zip(shards, nodes, strict=True)]
    return [*runs, lambda: front._run(settings, CollectorRegistry())], listen


def found(reply: Reply) -> list[object]:
    return [(each.text, each.score, each.confidence, each.passage.id) for each in reply.answers]


@pytest.mark.bundle
async def test_it_answers_bit_for_bit_as_content_nodes_do(indexes: dict[int, Path]) -> None:
    run, address = one_process(indexes[3], CollectorRegistry())
    async with running([run], address) as client:
        here = [found(await client.ask(each, **FEW, timeout=LONG)) for each, _ in QUESTIONS]
    assert all(here)
    first, second, third = shard_directories(indexes[3])
    for shards in ([[first], [second], [third]], [[first, second], [second, third]]):
        runs, address = cluster(*shards)
        async with running(runs, address) as client:
            assert [
                found(await client.ask(each, **FEW, timeout=LONG)) for each, _ in QUESTIONS
            ] == here


@pytest.mark.bundle
async def test_what_is_fed_is_found_until_it_is_deleted(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    index = Path(shutil.copytree(indexes[2], tmp_path / "index"))
    feed = f"127.0.0.1:{free_ports(1)[0]}"
    run, address = one_process(index, CollectorRegistry(), feed_listen=feed)
    async with running([run], address) as client, AsyncClient(feed) as feeding:
        await feeding.put([WON])
        assert (await client.ask(ASKED, timeout=LONG)).answers[0].text == "Marta Quendelheim"
        await feeding.delete(["zorblax"])
        assert "Marta Quendelheim" not in [
            each.text for each in (await client.ask(ASKED, timeout=LONG)).answers
        ]


@pytest.mark.bundle
async def test_a_damaged_shard_leaves_the_others_serving(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    index = Path(shutil.copytree(indexes[2], tmp_path / "index"))
    flip_bit(shard_directories(index)[1] / "passages.sqlite", 5_000)
    registry = CollectorRegistry()
    run, address = one_process(index, registry)
    async with running([run], address) as client:
        coverage = (await client.ask(QUESTIONS[0][0], timeout=LONG)).coverage
        assert not coverage.complete
        statuses = {part.shard: part.status for part in coverage.shards}
        assert statuses[0] is ShardStatus.SEARCHED
        assert statuses[1] is ShardStatus.NOT_LOADED
        ready = [
            registry.get_sample_value("winnow_node_ready", {"shard": shard}) for shard in ("0", "1")
        ]
        assert ready == [1, 0]


@pytest.mark.bundle
@pytest.mark.parametrize("other", [0, 1], ids=["shard of another index", "the same shard twice"])
async def test_a_shard_that_does_not_belong_there_is_left_out(
    other: int, indexes: dict[int, Path], tmp_path: Path
) -> None:
    """It used to be served, and the right shards were left out."""
    index = Path(shutil.copytree(indexes[2], tmp_path / "index"))
    wrong = (shard_directories(indexes[8])[1], shard_directories(index)[0])[other]
    shutil.rmtree(shard_directories(index)[1])
    shutil.copytree(wrong, shard_directories(index)[1])
    run, address = one_process(index, CollectorRegistry())
    async with running([run], address) as client:
        coverage = (await client.ask(QUESTIONS[0][0], timeout=LONG)).coverage
        statuses = [part.status for part in sorted(coverage.shards, key=lambda each: each.shard)]
        assert statuses == [ShardStatus.SEARCHED, ShardStatus.NOT_LOADED]


def test_the_shards_follow_a_journal_only_if_the_settings_say_so(
    indexes: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = StandaloneSettings.load({"index": indexes[1]}, None, {})
    shard = shard_directories(indexes[1])[0]
    assert not settings.node(shard, feed=None).feed
    monkeypatch.setenv("WINNOW_NODE_FEED", "true")
    monkeypatch.setenv("WINNOW_NODE_PULL", "file:///snapshots/index/shard-00000-of-00001")
    assert settings.node(shard, feed=None).feed
    assert not settings.node(shard, feed=False).feed
    assert settings.node(shard, feed=None).pull == "", "one URL is not that of every shard"


def test_an_index_that_is_only_read_ignores_the_variables_of_servers_in_the_same_shell(
    indexes: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell in which nodes are started can also run `winnow ask --index`."""
    shard = shard_directories(indexes[1])[0]
    for name, value in {
        "NODE_ARCHIVE_URL": "s3://bucket/archive",
        "NODE_ARCHIVE_AFTER": "60",
        "NODE_JOURNAL": "nats://127.0.0.1:4222",
        "NODE_INDEXES": "s3://bucket/indexes.json",
        "NODE_DATA": "/data",
        "FRONT_INDEXES": "s3://bucket/indexes.json",
        "FRONT_KEYS": "/missing",
        "FRONT_TLS_CERT": "/missing",
        "FRONT_HTTP_FEED": "true",
        "FRONT_HEADS": "/missing",
        "FRONT_RINGS": "new=/missing,/missing",
    }.items():
        monkeypatch.setenv(f"WINNOW_{name}", value)
    settings = StandaloneSettings.embedded({"index": indexes[1], "heads": ""}, None)
    node = settings.node(shard, feed=False)
    assert (node.archive_url, node.journal, node.indexes) == ("", "", "")
    assert (settings.keys, settings.tls_cert, settings.rings) == (None, None, [])
    with pytest.raises(SettingsError, match="needs --feed"):
        settings.node(shard, feed=None)
    assert settings.node(shard, feed=True).archive_url == "s3://bucket/archive"


async def test_where_no_shard_can_be_loaded_the_process_ends_and_says_why(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    index = Path(shutil.copytree(indexes[2], tmp_path / "index"))
    for shard in shard_directories(index):
        flip_bit(shard / "passages.sqlite", 5_000)
    run, _ = one_process(index, CollectorRegistry())
    with pytest.raises(ArtefactError, match=r"no shard can be loaded: .*00000.*00001"):
        async with asyncio.timeout(LONG):
            await run()
