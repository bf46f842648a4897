"""Encoding on a server, over real gRPC."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from structlog.testing import capture_logs
from tenacious import LONG, turn
from text_server import INFO, TextServer, serving

from winnow.bundle import Bundle
from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.domain.question import QuestionTokens
from winnow.errors import (
    IdentityError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.text.encoder import OnEncoded, TextEncoding
from winnow.text.routed import RoutedTextEncoder
from winnow.text.tokenizer import Tokenizer


class Fake:
    """Encodes when it is told to: states are the ids, framed."""

    def __init__(self) -> None:
        self.clients: list[str] = []
        self.begun, self.go_on, self.given_up = (asyncio.Event() for _ in range(3))
        self.go_on.set()
        self.fails: WinnowError | None = None
        self.states = True
        self.value = 0.0
        """Of [CLS] and [SEP]."""

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        self.clients.append(client)
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        if self.fails is not None:
            raise self.fails
        rows = np.array([self.value, *ids, self.value], np.float16)
        states = np.stack([rows] * 3, axis=1) if self.states else None
        levels = np.full((len(ids) + 2, 4), 7, np.int16)
        tokens = QuestionTokens(levels, np.ones(len(levels), np.float32))
        return TextEncoding(np.array([1, 0], np.float32), states, 0.25, 0.5, tokens=tokens)

    async def warm_up(self, longest: int) -> None: ...

    def close(self) -> None: ...


@contextlib.asynccontextmanager
async def silent() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """The address of a server that never replies, and whether it has had a connection."""
    called, leaves = asyncio.Event(), asyncio.Event()

    async def keep(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        await leaves.wait()
        writer.close()

    server = await asyncio.start_server(keep, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", called
    finally:
        leaves.set()
        server.close()


@contextlib.asynccontextmanager
async def remote(
    target: str,
    states: StatesFormat = StatesFormat.FLOAT16,
    fingerprint: str = INFO.fingerprint,
    timeout: float = LONG,
    patience: float = LONG,
    token_vectors: str = "",
) -> AsyncIterator[RoutedTextEncoder]:
    made = RoutedTextEncoder(
        fingerprint,
        states,
        token_vectors=token_vectors,
        timeout=timeout,
        startup_timeout=patience,
    )
    made.update(target.split(",") if target else [])
    yield made
    made.close()
    await made.close_nodes()


async def test_vector_and_states_come_back_and_the_client_goes_along() -> None:
    fake = Fake()
    async with serving(fake) as server, remote(server.address) as encoder:
        made = await encoder.encode([5, 6], "tenant-7")
        await encoder.encode([5])
    assert made.vector.tolist() == [1, 0]
    assert made.states is not None
    assert made.states[:, 0].tolist() == [0, 5, 6, 0]
    assert fake.clients == ["tenant-7", ""]
    assert made.encode == 0.5


@pytest.mark.parametrize("kind", list(StatesFormat))
async def test_states_come_as_they_are_wanted(kind: StatesFormat) -> None:
    async with serving(Fake()) as server, remote(server.address, kind) as encoder:
        made = await encoder.encode([5, 6])
    if kind is StatesFormat.NONE:
        assert made.states is None
    else:
        assert made.states is not None
        np.testing.assert_allclose(made.states[:, 0], [0, 5, 6, 0], rtol=1e-3)


async def test_a_caller_that_gives_up_ends_the_work() -> None:
    fake = Fake()
    fake.go_on.clear()
    async with serving(fake) as server, remote(server.address) as encoder:
        call = asyncio.create_task(encoder.encode([5]))
        await asyncio.wait_for(fake.begun.wait(), LONG)
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        await asyncio.wait_for(fake.given_up.wait(), LONG)
        assert server.admitted._load.reads_in_flight == 0


async def test_closing_cancels_waiting_callers() -> None:
    fake = Fake()
    fake.go_on.clear()
    async with serving(fake) as server, remote(server.address) as encoder:
        call = asyncio.create_task(encoder.encode([5]))
        await asyncio.wait_for(fake.begun.wait(), LONG)
        encoder.close()
        await asyncio.wait([call])
        assert call.cancelled()


async def test_a_refusal_says_when_to_come_back() -> None:
    fake = Fake()
    fake.go_on.clear()
    async with serving(fake, most=1) as server, remote(server.address) as encoder:
        first = asyncio.create_task(encoder.encode([5]))
        await asyncio.wait_for(fake.begun.wait(), LONG)
        with pytest.raises(OverloadedError, match="1 text is waiting already") as caught:
            await encoder.encode([6])
        fake.go_on.set()
        await first
    assert caught.value.retry_after > 0


async def test_an_encoder_that_takes_too_long_is_unavailable() -> None:
    """Callers with seconds left used to be told that their deadline had passed."""
    fake = Fake()
    fake.go_on.clear()
    async with serving(fake) as server, remote(server.address, timeout=0.2) as encoder:
        with pytest.raises(UnavailableError, match=r"did not answer within 0\.2 s"):
            await encoder.encode([5])


async def test_another_encoder_is_refused_before_and_during_service() -> None:
    async with serving(Fake()) as server, remote(server.address, fingerprint="other") as encoder:
        with pytest.raises(IdentityError, match=r"fake-print of bundle fake, expected other"):
            await encoder.warm_up(8)
        with pytest.raises(IdentityError, match=r"the caller expects the encoder .other."):
            await encoder.encode([5])


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (replace(INFO, width=0), "gives no token states"),
        (replace(INFO, max_tokens=7), "8 are needed"),
    ],
)
async def test_an_encoder_that_can_do_less_is_refused(info: EncoderInfo, said: str) -> None:
    async with serving(Fake(), info) as server, remote(server.address) as encoder:
        with pytest.raises(IdentityError, match=said):
            await encoder.warm_up(8)


@pytest.mark.parametrize("expected", ["", "late-print"])
async def test_an_encoder_without_expected_token_vectors_is_reported(expected: str) -> None:
    """Otherwise nobody would notice that questions are ranked without late interaction."""
    with capture_logs() as logs:
        async with (
            serving(Fake(), replace(INFO, token_vectors="")) as server,
            remote(server.address, token_vectors=expected) as encoder,
        ):
            await encoder.warm_up(8)
    warned = [log for log in logs if "returns no token vectors" in log["event"]]
    assert len(warned) == bool(expected)


async def test_an_invalid_encoding_is_the_fault_of_the_server() -> None:
    fake = Fake()
    fake.states = False
    async with serving(fake) as server, remote(server.address) as encoder:
        with pytest.raises(UnavailableError, match="token states that do not fit the request"):
            await encoder.encode([5])
        fake.states, fake.value = True, np.inf
        with pytest.raises(
            UnavailableError, match="sent an invalid encoding: states: every value must be finite"
        ):
            await encoder.encode([5])


async def test_it_waits_for_a_server_that_is_still_starting() -> None:
    server = TextServer(Fake())
    address = await server.start(serving=False)
    async with remote(address) as encoder:
        warming = asyncio.create_task(encoder.warm_up(8))
        with pytest.raises(UnavailableError):
            await encoder.encode([5])
        assert not warming.done()
        server.servicer.set_encoder(server.admitted)
        await server.server.set_serving(True)
        await asyncio.wait_for(warming, LONG)
        await encoder.encode([5])
    await server.server.drain(0)


async def test_without_a_server_it_says_where_it_looked() -> None:
    async with remote("127.0.0.1:1", patience=0.2) as encoder:
        with pytest.raises(UnavailableError, match=r"no encoder at 127\.0\.0\.1:1 within \S+ s"):
            await encoder.warm_up(8)


async def test_of_several_servers_one_that_leaves_costs_no_text() -> None:
    """When one server says that it leaves, and is gone, the other one has all texts."""
    fakes = [Fake(), Fake()]
    async with contextlib.AsyncExitStack() as stack:
        leaves, stays = [await stack.enter_async_context(serving(fake)) for fake in fakes]
        encoder = await stack.enter_async_context(remote(f"{leaves.address},{stays.address}"))

        async def both_asked() -> None:
            while not all(fake.clients for fake in fakes):
                await encoder.encode([5])

        await asyncio.wait_for(both_asked(), LONG)
        asked = asyncio.create_task(_many(encoder, 200))
        await leaves.server.drain(0)
        await asked
        await _many(encoder, 10, "last")
        assert fakes[1].clients.count("last") >= 10, "a late one may be sent twice"
        assert "last" not in fakes[0].clients


async def test_nodes_that_are_not_there_cost_no_text() -> None:
    """Two of three addresses have no server: one more attempt would not be enough."""
    async with serving(Fake()) as server, remote(f"127.0.0.1:1,127.0.0.1:2,{server.address}") as it:
        await it.warm_up(8)
        await _many(it, 30)


async def test_a_text_is_hedged_where_its_node_hangs() -> None:
    hangs, answers = Fake(), Fake()
    hangs.go_on.clear()
    async with contextlib.AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(serving(fake)) for fake in (hangs, answers)]
        target = ",".join(server.address for server in servers)
        encoder = await stack.enter_async_context(remote(target))
        await encoder.warm_up(8)
        while not hangs.begun.is_set():
            await encoder.encode([5])
        await asyncio.wait_for(hangs.given_up.wait(), LONG)


async def test_before_any_node_is_known_texts_are_refused_and_warming_up_waits() -> None:
    async with serving(Fake()) as server, remote("") as encoder:
        with pytest.raises(UnavailableError, match="no encoder node is known"):
            await encoder.encode([5])
        warming = asyncio.create_task(encoder.warm_up(8))
        await turn()
        assert not warming.done()
        encoder.update([server.address])
        await asyncio.wait_for(warming, LONG)


async def test_warming_up_goes_on_when_the_only_node_is_replaced() -> None:
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(Fake()))
        first, first_called = await stack.enter_async_context(silent())
        second, second_called = await stack.enter_async_context(silent())
        encoder = await stack.enter_async_context(remote(first))
        warming = asyncio.create_task(encoder.warm_up(8))
        await asyncio.wait_for(first_called.wait(), LONG)
        encoder.update([second])
        await asyncio.wait_for(second_called.wait(), LONG)
        encoder.update([server.address])
        await asyncio.wait_for(warming, LONG)


async def _many(encoder: RoutedTextEncoder, texts: int, client: str = "") -> None:
    for _ in range(texts):
        await encoder.encode([5], client)


@pytest.mark.parametrize(
    ("expected", "served", "sent"),
    [
        ("print", "print", True),
        ("", "print", False),
        ("print", "other", False),
        ("print", "", False),
    ],
)
async def test_token_vectors_are_sent_only_if_they_are_the_expected_ones(
    expected: str, served: str, sent: bool
) -> None:
    async with (
        serving(Fake(), replace(INFO, token_vectors=served)) as server,
        remote(server.address, token_vectors=expected) as encoder,
    ):
        tokens = (await encoder.encode([5, 6])).tokens
    assert (tokens is not None) is sent
    if tokens is not None:
        assert tokens.levels.tolist() == [[7] * 4] * 4


@pytest.mark.bundle
async def test_a_text_is_encoded_alike_here_and_there(bundle: Bundle) -> None:
    """Bit for bit, vector and states."""
    tokenizer = Tokenizer(bundle.tokenizer)
    local = LocalTextEncoder(open_question_encoder(bundle, tokenizer.special, states=True), 1)
    manifest = bundle.manifest
    info = EncoderInfo(
        bundle="b", fingerprint=manifest.states_fingerprint, dimension=384, width=384, max_tokens=62
    )
    ids = [7, 8, 99]
    try:
        async with (
            serving(local, info) as server,
            remote(server.address, fingerprint=info.fingerprint) as encoder,
        ):
            await encoder.warm_up(62)
            there = await encoder.encode(ids)
        here = await local.encode(ids)
    finally:
        local.close()
    assert here.states is not None
    assert there.states is not None
    assert there.vector.tobytes() == here.vector.tobytes()
    assert there.states.tobytes() == here.states.tobytes()
