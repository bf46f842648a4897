"""What the scenarios are made of: a proxy that is late, metrics, a load, a table that fits."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from held_ports import free_ports
from tenacious import happens

from bench.common import gauges
from bench.faults.load import FrontAsker, Load
from bench.faults.proxy import Proxy
from bench.faults.stage import Stage
from bench.faults.table import SCENARIOS
from winnow.cli.local.cluster import LocalCluster
from winnow.client.messages import AnswerClient
from winnow.errors import OverloadedError
from winnow.v1 import answer_pb2


@pytest.fixture
async def echo() -> AsyncIterator[str]:
    """HOST:PORT of a server that says what it hears."""

    async def talk(heard: asyncio.StreamReader, said: asyncio.StreamWriter) -> None:
        while chunk := await heard.read(100):
            said.write(chunk)
        said.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


async def test_a_proxy_passes_on_what_is_said_in_order_and_late(echo: str) -> None:
    proxy = Proxy(free_ports(1)[0])
    proxy.target, proxy.delay = echo, 0.05
    async with proxy.listening():
        near, forth = await asyncio.open_connection(*proxy.address.split(":"))
        began = asyncio.get_running_loop().time()
        for word in (b"one ", b"two ", b"three"):
            forth.write(word)
        assert await asyncio.wait_for(near.readexactly(13), 10) == b"one two three"
        assert asyncio.get_running_loop().time() - began >= 0.05
        forth.close()
        assert await asyncio.wait_for(near.read(), 10) == b""


async def test_before_its_node_is_known_a_proxy_hangs_up() -> None:
    proxy = Proxy(free_ports(1)[0])
    async with proxy.listening():
        near, forth = await asyncio.open_connection(*proxy.address.split(":"))
        assert await asyncio.wait_for(near.read(), 10) == b""
        forth.close()


async def test_a_proxy_that_is_left_ends_its_connections(echo: str) -> None:
    proxy = Proxy(free_ports(1)[0])
    proxy.target = echo
    async with proxy.listening():
        near, forth = await asyncio.open_connection(*proxy.address.split(":"))
        forth.write(b"hello")
        assert await asyncio.wait_for(near.readexactly(5), 10) == b"hello"
    assert await asyncio.wait_for(near.read(), 10) == b""
    forth.close()


def test_mapped_files_are_no_memory_of_its_own() -> None:
    assert 0 < gauges.own_memory([os.getpid()]) < gauges.memory([os.getpid()])


def test_an_open_file_is_a_descriptor(tmp_path: Path) -> None:
    before = gauges.descriptors([os.getpid()])
    with (tmp_path / "open").open("w"):
        assert gauges.descriptors([os.getpid()]) == before + 1


def test_series_are_added_up_by_their_labels() -> None:
    page = (
        "# TYPE winnow_calls counter\n"
        'winnow_calls_total{shard="0",result="sent"} 3\n'
        'winnow_calls_total{shard="1",result="sent"} 4\n'
        'winnow_calls_total{shard="1",result="won"} 1\n'
    )
    assert gauges.total(page, "winnow_calls_total", result="sent") == 7
    assert gauges.total(page, "winnow_calls_total") == 8
    assert gauges.total(page, "winnow_other") == 0


def test_memory_is_that_of_all_processes() -> None:
    own = gauges.memory([os.getpid()])
    assert own > 1 << 20
    assert gauges.memory([os.getpid()] * 2) == pytest.approx(2 * own, rel=0.1)


class Client(AnswerClient):
    """Answers the questions that begin with a vowel, and refuses the others."""

    def __init__(self) -> None:
        pass

    async def ask(
        self, request: answer_pb2.AnswerRequest, timeout: float
    ) -> answer_pb2.AnswerResponse:
        if request.question[0] in "aeiou":
            return answer_pb2.AnswerResponse(coverage=answer_pb2.Coverage(complete=True))
        raise OverloadedError("RESOURCE_EXHAUSTED: full")


async def test_every_question_becomes_a_row_of_the_phase_in_which_it_ends() -> None:
    load = Load(FrontAsker(Client(), 1.0), ["up", "down"])
    load.phase = "first"
    for _ in range(3):
        await load.ask()
    load.phase = "second"
    async with load.at(rate=1000.0):
        await happens(lambda: len(load.rows["second"]) >= 4)
    statuses = [row.status for row in load.rows["first"]]
    assert statuses == ["OK", "RESOURCE_EXHAUSTED", "OK"]
    assert [row.complete for row in load.rows["first"]] == [True, False, True]


async def test_a_phase_lasts_until_it_has_the_answers_that_it_needs() -> None:
    load = Load(FrontAsker(Client(), 1.0), ["up", "down"])
    stage = stage_of(load, seconds=0.02, least=20)
    async with load.at(rate=1000.0):
        await stage.collect("healthy")
    assert sum(row.status == "OK" for row in load.rows["healthy"]) >= 20


async def test_a_phase_ends_even_if_the_answers_that_it_needs_never_come() -> None:
    load = Load(FrontAsker(Client(), 1.0), ["down"])
    stage = stage_of(load, seconds=0.01, least=20)
    async with load.at(rate=100.0):
        await asyncio.wait_for(stage.collect("healthy"), 10)
    assert all(row.status == "RESOURCE_EXHAUSTED" for row in load.rows["healthy"])


def stage_of(load: Load, seconds: float, least: int) -> Stage:
    """With a load and no cluster."""
    cluster, asking, proxy = cast(LocalCluster, None), FrontAsker(Client(), 1.0), Proxy(0)
    return Stage(cluster, asking, load, "", seconds, lambda _: None, proxy, "", Path(), least=least)


def test_scenarios_have_names_of_their_own() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert all(scenario.criteria for scenario in SCENARIOS)
