"""A front put together."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry
from small_heads import small_head
from tenacious import LONG

import winnow.stateless.__main__ as front
from winnow.bundle import Bundle
from winnow.cli.local.ports import free_ports
from winnow.client import AsyncClient
from winnow.errors import NotFoundError, UnavailableError, WinnowError
from winnow.heads.store import open_store
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.composing import cluster, placed_heads
from winnow.stateless.settings import FrontSettings


class Dying(Discovery):
    """Ends by a mistake in the program."""

    async def run(self) -> None:
        raise ZeroDivisionError("a bug")


async def test_a_front_that_stops_looking_after_its_nodes_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It used to say SERVING for ever, with the nodes that it knew last."""
    monkeypatch.setattr(cluster, "Discovery", Dying)
    listen, node = free_ports(2)
    given = {"shards": [f"127.0.0.1:{node}"], "listen": f"127.0.0.1:{listen}"}
    settings = FrontSettings.load(given, None, {})
    with pytest.raises(WinnowError, match=r"the background task of content nodes ended .*a bug"):
        await asyncio.wait_for(front._run(settings, CollectorRegistry()), LONG)


async def test_a_front_that_stops_looking_for_its_head_servers_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def follow(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(placed_heads, "follow_targets", follow)
    listen, server = free_ports(2)
    given = {"head_servers": [f"127.0.0.1:{server}"], "listen": f"127.0.0.1:{listen}"}
    settings = FrontSettings.load(given, None, {})
    with pytest.raises(WinnowError, match=r"the background task of head servers ended .*a bug"):
        await asyncio.wait_for(front._run(settings, CollectorRegistry()), LONG)


@pytest.mark.bundle
async def test_a_further_ring_cannot_take_the_name_of_the_default_one(
    bundle: Bundle, tmp_path: Path
) -> None:
    """It used to take its place: heads of the default encoder group were not found."""
    (port,) = free_ports(1)
    given = {
        "bundle": bundle.directory,
        "heads": str(tmp_path / "heads"),
        "rings": [f"{bundle.manifest.name}={bundle.directory},{tmp_path / 'others'}"],
        "listen": f"127.0.0.1:{port}",
    }
    settings = FrontSettings.load(given, None, {})
    with pytest.raises(
        WinnowError, match=f"two encoder groups have the name {bundle.manifest.name}"
    ):
        async with asyncio.timeout(LONG):
            await front._run(settings, CollectorRegistry())


async def test_a_front_listens_before_its_encoder_is_there(tmp_path: Path) -> None:
    """It used to wait for a minute with nobody to ask how it is."""
    listen, encoder = (f"127.0.0.1:{port}" for port in free_ports(2))
    given = {"heads": str(tmp_path), "encoder_address": encoder, "listen": listen}
    settings = FrontSettings.load(given, None, {})
    serving = asyncio.create_task(front._run(settings, CollectorRegistry()))
    try:
        async with asyncio.timeout(LONG), grpc.aio.insecure_channel(listen) as channel:
            said = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), wait_for_ready=True
            )
        assert said.status == health_pb2.HealthCheckResponse.NOT_SERVING
    finally:
        serving.cancel()
        await asyncio.wait([serving])


@contextlib.asynccontextmanager
async def predicting(heads: Path) -> AsyncIterator[AsyncClient]:
    """A front without shards, ready."""
    (port,) = free_ports(1)
    settings = FrontSettings.load({"heads": str(heads), "listen": f"127.0.0.1:{port}"}, None, {})
    serving = asyncio.create_task(front._run(settings, CollectorRegistry()))
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            watched = health_pb2_grpc.HealthStub(channel).Watch(
                health_pb2.HealthCheckRequest(service="winnow.v1.HeadService"), wait_for_ready=True
            )
            async for told in watched:
                if told.status == health_pb2.HealthCheckResponse.SERVING:
                    break
        async with AsyncClient(f"127.0.0.1:{port}") as client:
            yield client
    finally:
        serving.cancel()
        await asyncio.wait([serving])


@pytest.mark.bundle
async def test_a_front_with_heads_and_no_shards_predicts_and_does_not_answer(
    bundle: Bundle, tmp_path: Path
) -> None:
    print_ = bundle.manifest.states_fingerprint
    head = small_head(tmp_path / "intent", width=384, fingerprint=print_, says=1)
    open_store(tmp_path / "store").publish(head)
    async with predicting(tmp_path / "store") as client:
        said = await client.predict("hello", "intent")
        assert said.results[0].heads[0].label == "weather"
        assert said.ring == bundle.manifest.name
        assert not await client.available()
        with pytest.raises(UnavailableError, match="the front lacks --shards"):
            await client.ask("Who?")


@pytest.mark.bundle
async def test_a_front_whose_store_is_not_there_is_ready_and_says_so_when_asked(
    tmp_path: Path,
) -> None:
    async with predicting(tmp_path / "missing") as client:
        with pytest.raises(WinnowError) as caught:
            await client.predict("hello", "intent")
    assert isinstance(caught.value, (NotFoundError, UnavailableError))
