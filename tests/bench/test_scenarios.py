"""The parts of scenarios: a proxy, metrics of processes, a load, a stage, tables."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client import start_http_server
from tenacious import LONG
from virtual_loop import VirtualLoop

from bench import fairness, processes
from bench.faults.scenarios import SCENARIOS
from bench.hostile.attacker import ATTACKS
from bench.hostile.scenarios import scenarios as attacks
from bench.scenarios.load import FrontAsker, Load
from bench.scenarios.measurements import Measurements, QuestionOutcome, failed_outcome
from bench.scenarios.proxy import Proxy
from bench.scenarios.runner import Scenario
from bench.scenarios.stage import Setup, Stage
from winnow.cli.local.cluster import LocalCluster
from winnow.cli.local.ports import free_ports
from winnow.client.messages import AnswerClient
from winnow.errors import OverloadedError
from winnow.v1 import answer_pb2


@pytest.fixture
async def echo_server() -> AsyncIterator[str]:
    """HOST:PORT of a server that returns what it receives."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(100):
            writer.write(chunk)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


async def test_a_proxy_delays_replies_and_keeps_their_order(echo_server: str) -> None:
    proxy = Proxy(free_ports(1)[0])
    proxy.target, proxy.delay = echo_server, 0.05
    async with proxy.listening():
        near, forth = await asyncio.open_connection(*proxy.address.split(":"))
        began = asyncio.get_running_loop().time()
        for word in (b"one ", b"two ", b"three"):
            forth.write(word)
        assert await asyncio.wait_for(near.readexactly(13), LONG) == b"one two three"
        assert asyncio.get_running_loop().time() - began >= 0.05
        forth.close()
        assert await asyncio.wait_for(near.read(), LONG) == b""


async def test_a_proxy_without_a_target_closes_connections() -> None:
    proxy = Proxy(free_ports(1)[0])
    async with proxy.listening():
        near, forth = await asyncio.open_connection(*proxy.address.split(":"))
        assert await asyncio.wait_for(near.read(), LONG) == b""
        forth.close()


async def test_a_proxy_that_ends_closes_its_connections(echo_server: str) -> None:
    proxy = Proxy(free_ports(1)[0])
    proxy.target = echo_server
    async with proxy.listening():
        near, forth = await asyncio.open_connection(*proxy.address.split(":"))
        forth.write(b"hello")
        assert await asyncio.wait_for(near.readexactly(5), LONG) == b"hello"
    assert await asyncio.wait_for(near.read(), LONG) == b""
    forth.close()


def test_mapped_files_are_not_anonymous_memory() -> None:
    assert 0 < processes.anonymous_bytes([os.getpid()]) < processes.resident_bytes([os.getpid()])


def test_an_open_file_counts_as_a_descriptor(tmp_path: Path) -> None:
    """Counts those of another process, in which nothing else opens files."""

    def count(*passed: int) -> int:
        with subprocess.Popen(
            ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=passed
        ) as cat:
            assert cat.stdin is not None
            assert cat.stdout is not None
            cat.stdin.write(b"started\n")
            cat.stdin.flush()
            assert cat.stdout.readline() == b"started\n"
            descriptors = processes.open_descriptors([cat.pid])
            cat.stdin.close()
        return descriptors

    with (tmp_path / "open").open("w") as opened:
        assert count(opened.fileno()) == count() + 1


async def test_a_page_of_metrics_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_TIMEOUT", LONG)
    server, thread = start_http_server(0, "127.0.0.1")
    try:
        page = await processes.fetch_metrics(f"127.0.0.1:{server.server_port}")
        assert processes.metric_sum(page, "python_info") == 1
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    with pytest.raises(OSError, match="refused"):
        await processes.fetch_metrics("127.0.0.1:1")


def test_series_are_added_up_by_their_labels() -> None:
    page = (
        "# TYPE winnow_calls counter\n"
        'winnow_calls_total{shard="0",result="sent"} 3\n'
        'winnow_calls_total{shard="1",result="sent"} 4\n'
        'winnow_calls_total{shard="1",result="won"} 1\n'
    )
    assert processes.metric_sum(page, "winnow_calls_total", result="sent") == 7
    assert processes.metric_sum(page, "winnow_calls_total") == 8
    assert processes.metric_sum(page, "winnow_other") == 0


def test_memory_is_added_up_over_processes() -> None:
    own = processes.resident_bytes([os.getpid()])
    assert own > 1 << 20
    assert processes.resident_bytes([os.getpid()] * 2) == pytest.approx(2 * own, rel=0.1)


class Client(AnswerClient):
    """Answers questions that begin with a vowel, and refuses others."""

    def __init__(self) -> None:
        self._asked, self._changed = 0, asyncio.Condition()

    async def reached(self, number: int) -> None:
        """Waits until it was asked more than `number` questions."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._asked > number)

    async def ask(
        self, request: answer_pb2.AnswerRequest, timeout: float
    ) -> answer_pb2.AnswerResponse:
        async with self._changed:
            self._asked += 1
            self._changed.notify_all()
        if request.question[0] in "aeiou":
            return answer_pb2.AnswerResponse(coverage=answer_pb2.Coverage(complete=True))
        raise OverloadedError("RESOURCE_EXHAUSTED: full")


async def test_a_question_belongs_to_the_phase_in_which_it_ends() -> None:
    client = Client()
    load = Load(FrontAsker(client, 1.0), ["up", "down"])
    load.phase = "first"
    for _ in range(3):
        await load.ask()
    load.phase = "second"
    async with load.ask_at_rate(rate=1000.0):
        await client.reached(3 + 4)
    statuses = [outcome.status for outcome in load.outcomes["first"]]
    assert statuses == ["OK", "RESOURCE_EXHAUSTED", "OK"]
    assert [outcome.complete for outcome in load.outcomes["first"]] == [True, False, True]


def test_a_phase_lasts_until_it_has_enough_answers() -> None:
    async def collected() -> Load:
        load = Load(FrontAsker(Client(), 1.0), ["up", "down"])
        async with load.ask_at_rate(rate=20.0):
            await stage_of(load, seconds=1.0, min_answers=20).run_until_enough_answers("healthy")
        return load

    load = in_virtual_time(collected())
    assert sum(outcome.status == "OK" for outcome in load.outcomes["healthy"]) >= 20


def test_a_phase_ends_even_if_it_never_has_enough_answers() -> None:
    async def collected() -> Load:
        load = Load(FrontAsker(Client(), 1.0), ["down"])
        async with load.ask_at_rate(rate=100.0):
            await stage_of(load, seconds=1.0, min_answers=20).run_until_enough_answers("healthy")
        return load

    outcomes = in_virtual_time(collected()).outcomes["healthy"]
    assert len(outcomes) >= 100
    assert all(outcome.status == "RESOURCE_EXHAUSTED" for outcome in outcomes)


def in_virtual_time(collecting: Coroutine[Any, Any, Load]) -> Load:
    """Runs it on a clock that moves only while nothing can be done."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(collecting)


def stage_of(load: Load, seconds: float, min_answers: int) -> Stage:
    """Returns a stage with a load and no cluster."""
    return Stage(
        cluster=cast(LocalCluster, None),
        asker=FrontAsker(Client(), 1.0),
        load=load,
        questions=[],
        front_metrics="",
        seconds=seconds,
        show_progress=lambda _: None,
        proxy=Proxy(0),
        foreign_address="",
        index=Path(),
        setup=Setup(min_answers=min_answers),
    )


@pytest.mark.parametrize("scenarios", [SCENARIOS, attacks(), fairness.SCENARIOS])
def test_every_scenario_has_criteria(scenarios: dict[str, Scenario]) -> None:
    assert all(scenario.criteria for scenario in scenarios.values())


def test_every_scenario_of_attacks_has_its_attack() -> None:
    names = {*attacks(), *fairness.SCENARIOS}
    assert names - {"leave-watches", "leave-half-sent", "soak"} <= set(ATTACKS)


def test_fairness_is_judged_by_fair_share_and_goodput() -> None:
    polite = [QuestionOutcome(0.0, 0.3)] * 9 + [failed_outcome("RESOURCE_EXHAUSTED")]
    phases = {fairness.ALONE: [QuestionOutcome(0.0, 0.1)], fairness.BESIDE: polite}
    marks = {"beside, outcome OK": 91.0, "beside no names, outcome OK": 100.0}
    measurements = Measurements({**phases, fairness.BESIDE_UNNAMED: []}, marks)
    assert fairness.max_median_ratio(3.1)(measurements).holds
    assert not fairness.max_median_ratio(2.9)(measurements).holds
    assert fairness.min_answered(0.9)(measurements).holds
    assert not fairness.min_answered(0.95)(measurements).holds
    assert fairness.fair_share(9)(measurements).holds
    assert not fairness.fair_share(8)(measurements).holds
    assert fairness.min_goodput_ratio(1.0)(measurements).holds
    assert not fairness.min_goodput_ratio(1.01)(measurements).holds
