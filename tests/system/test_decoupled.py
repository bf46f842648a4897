"""Encoder and head nodes in separate processes, with signals."""

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from small_heads import FINGERPRINT, WIDTH, small_head
from tenacious import LONG, until

from winnow.bundle import Bundle
from winnow.cli.local.ports import free_ports
from winnow.client import Client, TextPrediction
from winnow.deadline import Deadline
from winnow.domain.encoder import StatesFormat
from winnow.domain.prediction import Applied
from winnow.errors import IdentityError
from winnow.heads.remote import placed_heads
from winnow.heads.store import open_store
from winnow.text.routed import RoutedTextEncoder

HEADS = [f"intent-{n}" for n in range(9)]
STATES = np.ones((4, WIDTH), np.float16)


class Serving:
    """A process that serves on a free port."""

    def __init__(self, *command: str) -> None:
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        arguments = [*command, "--listen", self.address, "--drain-linger", "0"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "winnow", *arguments], stderr=subprocess.PIPE, text=True
        )

    def wait_ready(self) -> None:
        until(lambda: self.process.poll() is not None or self._serving())
        assert self.process.poll() is None, self.process.stderr and self.process.stderr.read()

    def _serving(self) -> bool:
        with grpc.insecure_channel(self.address) as channel, contextlib.suppress(grpc.RpcError):
            reply = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=LONG
            )
            return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)
        return False

    def end(self, sent: signal.Signals) -> tuple[int, str]:
        """Its exit code after a signal, and what it has said."""
        self.process.send_signal(sent)
        _, said = self.process.communicate(timeout=LONG)
        return self.process.returncode, said


@contextlib.contextmanager
def serving(*commands: list[str]) -> Iterator[list[Serving]]:
    started = [Serving(*command) for command in commands]
    try:
        for each in started:
            each.wait_ready()
        yield started
    finally:
        for each in started:
            each.process.kill()
            each.process.communicate()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("heads")
    made = open_store(root / "store")
    for head in HEADS:
        made.publish(small_head(root / head, head))
    return root / "store"


@pytest.mark.bundle
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_an_encoder_node_serves_until_a_signal_ends_it(
    bundle: Bundle, sent: signal.Signals
) -> None:
    async def encode(address: str) -> None:
        fingerprint = bundle.manifest.states_fingerprint
        encoder = RoutedTextEncoder(
            fingerprint, StatesFormat.INT8, timeout=LONG, startup_timeout=LONG
        )
        encoder.update([address])
        await encoder.warm_up(254)
        made = await encoder.encode([2040, 2180])
        await encoder.close_nodes()
        assert made.states is not None
        assert made.states.shape == (4, 384)
        assert abs(float(np.linalg.norm(made.vector)) - 1) < 1e-3

    with serving(["encoder", "--bundle", str(bundle.directory)]) as (encoder,):
        asyncio.run(encode(encoder.address))
        code, said = encoder.end(sent)
    assert code == 0, said
    assert "stopped" in said
    assert "Traceback" not in said


@pytest.mark.bundle
def test_an_int8_encoder_is_refused_batches(bundle: Bundle) -> None:
    refused = Serving("encoder", "--bundle", str(bundle.directory), "--batch", "2")
    _, said = refused.process.communicate(timeout=LONG)
    assert refused.process.returncode == 1
    assert "2 texts per run need a float model" in said
    assert "Traceback" not in said


@pytest.mark.bundle
def test_cuda_is_refused_without_a_gpu(bundle: Bundle) -> None:
    refused = Serving("encoder", "--bundle", str(bundle.directory), "--runtime", "cuda")
    _, said = refused.process.communicate(timeout=LONG)
    assert refused.process.returncode == 1
    assert "a GPU runs float models only" in said


async def refused(address: str) -> None:
    """Expects that a head server refuses states of another encoder."""
    heads = placed_heads("another")
    heads.update([address])
    found = await heads.apply(STATES, HEADS, Deadline.after(LONG))
    assert {type(each.failure) for each in found} == {IdentityError}
    await heads.close()


def test_killing_one_of_three_head_servers_fails_no_head_and_the_others_shut_down(
    store: Path,
) -> None:
    async def ask(servers: list[Serving]) -> None:
        heads = placed_heads(FINGERPRINT)
        heads.update([each.address for each in servers])
        failures: list[Applied] = []

        async def some(times: int) -> None:
            for _ in range(times):
                found = await heads.apply(STATES, HEADS, Deadline.after(LONG))
                failures.extend(each for each in found if each.failure is not None)

        await some(20)
        load = [asyncio.create_task(some(50)) for _ in range(4)]
        await asyncio.wait([asyncio.create_task(some(20))])
        servers[0].process.kill()
        await asyncio.gather(*load)
        assert failures == []
        await heads.close()

    command = ["heads", "serve", "--store", str(store)]
    with serving(command, command, command) as servers:
        asyncio.run(ask(servers))
        asyncio.run(refused(servers[1].address))
        for server, sent in zip(servers[1:], (signal.SIGTERM, signal.SIGINT), strict=True):
            code, said = server.end(sent)
            assert code == 0, said
            assert "Traceback" not in said


@pytest.mark.bundle
def test_predictions_stay_the_same_when_a_head_server_is_killed(
    bundle: Bundle, tmp_path: Path
) -> None:
    store, fingerprint = tmp_path / "store", bundle.manifest.states_fingerprint
    for number, head in enumerate(HEADS, 1):
        made = small_head(tmp_path / head, head, number, width=384, fingerprint=fingerprint)
        open_store(store).publish(made)
    servers = [["heads", "serve", "--store", str(store)]] * 2
    with serving(*servers) as started:
        placed = [f"--head-servers={each.address}" for each in started]
        with serving(["front", *placed]) as (front,), Client(front.address) as client:
            before = client.predict("play some music", HEADS, timeout=LONG).results
            assert not any(head.failure for head in before[0].heads)
            started[0].process.kill()
            for _ in range(9):
                assert client.predict("play some music", HEADS, timeout=LONG).results == before


@pytest.mark.bundle
def test_predictions_do_not_depend_on_where_texts_are_encoded_and_heads_applied(
    bundle: Bundle, tmp_path: Path
) -> None:
    """Predictions are equal bit for bit, because states are sent unchanged."""
    store, fingerprint = tmp_path / "store", bundle.manifest.states_fingerprint
    for head, kind in (("intent", "sequence"), ("names", "token")):
        made = small_head(tmp_path / head, head, kind=kind, width=384, fingerprint=fingerprint)
        open_store(store).publish(made)
    texts = ["Who is Ada Lovelace?", "word " * 300, "e\u0301 👩\u200d🚀 北京"]

    def predicted(front: Serving) -> tuple[TextPrediction, ...]:
        with Client(front.address) as client:
            return client.predict(texts, ["intent", "names"], timeout=LONG).results

    apart = [["encoder"], ["heads", "serve", "--store", str(store)]]
    with serving(*apart) as (encoder, heads):
        there = ["--encoder-address", encoder.address]
        fronts = [
            ["front", "--heads", str(store)],
            ["front", "--head-servers", heads.address, *there],
        ]
        with serving(*fronts) as started:
            local, other = map(predicted, started)
            code, said = started[1].end(signal.SIGTERM)
    assert other == local
    assert [each.truncated for each in local] == [False, True, False]
    assert not any(head.failure for text in local for head in text.heads)
    assert code == 0, said
    assert "Traceback" not in said


def test_a_hanging_store_does_not_delay_shutdown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:  # accepts, and never says a word
        place = f"ftp://127.0.0.1:{mute.getsockname()[1]}/heads"
        waits = Serving("heads", "serve", "--store", place)
        assert waits.process.stderr is not None
        assert any("listening" in line for line in waits.process.stderr)
        with mute.accept()[0]:  # it is being asked
            code, said = waits.end(signal.SIGTERM)
    assert code == 0, said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("place", "what"),
    [(".", "publish one with `winnow heads publish`"), ("none", "No such file or directory")],
)
def test_a_store_without_heads_is_refused_with_the_reason(
    place: str, what: str, tmp_path: Path
) -> None:
    refused = Serving("heads", "serve", "--store", str(tmp_path / place))
    _, said = refused.process.communicate(timeout=LONG)
    assert refused.process.returncode == 1
    assert what in said
    assert "Traceback" not in said
