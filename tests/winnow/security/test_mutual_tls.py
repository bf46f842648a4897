"""Mutual TLS between nodes, over real gRPC: who gets through, and what happens to those in hand."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from certificates import Authority
from prometheus_client import CollectorRegistry
from tenacious import LONG, happens

from winnow.rpc.channel import open_balanced, open_channel, open_unshared
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.security.certificates import Certificates, TlsFiles
from winnow.security.from_settings import ServerSecurity
from winnow.security.peers import PeerChannels
from winnow.security.serving import http_context
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import answer_pb2, answer_pb2_grpc

SERVICE = "winnow.v1.AnswerService"
NAME = "node.winnow.test"


class Servicer(answer_pb2_grpc.AnswerServiceServicer):
    """Answers; those that hang do when they are let go."""

    def __init__(self) -> None:
        self.hanging, self.free = asyncio.Event(), asyncio.Event()

    async def Answer(self, request: answer_pb2.AnswerRequest, context: Any) -> Any:
        if request.question == "hang":
            self.hanging.set()
            await self.free.wait()
        return answer_pb2.AnswerResponse(request_id=context.peer())


class Node:
    """A server with a certificate of `NAME`, for clients with one of the authority."""

    def __init__(self, authority: Authority) -> None:
        self.authority, self.servicer = authority, Servicer()
        self.certificates = Certificates(authority.issue("node", [NAME, "127.0.0.1"]))
        self.server = Server(
            services=[SERVICE],
            interceptor=CallInterceptor(RpcMetrics(CollectorRegistry()), quiet=True),
            security=ServerSecurity(self.certificates),
        )
        answer_pb2_grpc.add_AnswerServiceServicer_to_server(self.servicer, self.server.grpc)
        self.address = ""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def node(authority: Authority) -> AsyncIterator[Node]:
    made = Node(authority)
    made.address = f"127.0.0.1:{await made.server.start('127.0.0.1:0')}"
    await made.server.set_serving(True)
    yield made
    await made.server.drain(0)


async def said(channel: grpc.aio.Channel, question: str = "who?") -> str:
    """OK, or what a call failed with."""
    stub = answer_pb2_grpc.AnswerServiceStub(channel)
    try:
        await stub.Answer(answer_pb2.AnswerRequest(question=question), timeout=LONG)
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    return "OK"


def peers(files: TlsFiles, name: str = "") -> PeerChannels:
    return PeerChannels(Certificates(files), name)


@pytest.mark.parametrize("name", ["", NAME])
async def test_a_client_of_the_same_authority_gets_through(node: Node, name: str) -> None:
    """By the address that it calls, or by the name that it expects."""
    files = node.authority.issue("front")
    async with open_channel(node.address, peers(files, name)) as channel:
        assert await said(channel) == "OK"
    async with open_balanced(node.address, SERVICE, peers=peers(files, name)) as channel:
        assert await said(channel) == "OK"


async def test_plain_text_gets_no_connection(node: Node) -> None:
    async with open_channel(node.address) as channel:
        assert (await said(channel)).startswith("UNAVAILABLE")


async def test_a_client_without_a_certificate_gets_no_connection(node: Node) -> None:
    async with open_channel(node.address, peers(TlsFiles(ca=node.authority.ca))) as channel:
        assert (await said(channel)).startswith("UNAVAILABLE")


async def test_a_client_of_another_authority_gets_no_connection(node: Node, tmp_path: Path) -> None:
    files = Authority(tmp_path, "stranger").issue("front", ca=node.authority.ca)
    async with open_channel(node.address, peers(files)) as channel:
        assert (await said(channel)).startswith("UNAVAILABLE")


async def test_a_client_whose_certificate_has_expired_gets_no_connection(node: Node) -> None:
    async with open_channel(node.address, peers(node.authority.issue("front", days=-1))) as channel:
        assert (await said(channel)).startswith("UNAVAILABLE")


async def test_a_server_of_another_authority_is_not_called(node: Node, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "stranger")
    async with open_channel(
        node.address, peers(node.authority.issue("front", ca=stranger.ca))
    ) as channel:
        assert "CERTIFICATE_VERIFY_FAILED" in await said(channel)


async def test_a_server_with_another_name_is_not_called(node: Node) -> None:
    async with open_channel(
        node.address, peers(node.authority.issue("front"), "other.winnow.test")
    ) as channel:
        assert "Hostname Verification Check failed" in await said(channel)


async def test_a_server_whose_certificate_has_expired_is_not_called(node: Node) -> None:
    node.authority.issue("node", [NAME, "127.0.0.1"], days=-1)
    async with open_channel(node.address, peers(node.authority.issue("front"))) as channel:
        assert "certificate has expired" in await said(channel)


async def test_a_server_takes_up_new_certificates_and_keeps_its_connections(node: Node) -> None:
    front = node.authority.issue("front")
    async with open_unshared(node.address, peers(front, NAME)) as before:
        assert await said(before) == "OK"
        node.authority.issue("node", ["renamed.winnow.test"])
        async with open_unshared(node.address, peers(front, "renamed.winnow.test")) as after:
            assert await said(after) == "OK"
        assert await said(before) == "OK"


async def test_a_server_takes_up_other_authorities(node: Node, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    files = other.issue("front", ca=node.authority.ca)
    node.authority.ca.write_bytes(node.authority.ca.read_bytes() + other.ca.read_bytes())
    async with open_unshared(node.address, peers(files, NAME)) as channel:
        assert await said(channel) == "OK"


async def test_a_client_takes_up_new_certificates_and_ends_no_call(node: Node) -> None:
    """New calls go over a connection of their own; the old one is closed when it is idle."""
    files = node.authority.issue("front")
    certificates = Certificates(files)
    async with open_unshared(node.address, PeerChannels(certificates)) as channel:
        stub = answer_pb2_grpc.AnswerServiceStub(channel)
        old = stub.Answer(answer_pb2.AnswerRequest(question="hang"), timeout=60)
        await node.servicer.hanging.wait()
        node.authority.issue("front")
        certificates.refresh()
        new = await stub.Answer(answer_pb2.AnswerRequest(question="who?"), timeout=LONG)
        node.servicer.free.set()
        assert (await old).request_id != new.request_id, "one connection carried both"
        again = await stub.Answer(answer_pb2.AnswerRequest(question="who?"), timeout=LONG)
        assert again.request_id == new.request_id
        (left,) = channel._retired  # type: ignore[attr-defined]
        await happens(lambda: left.closed)


async def test_files_are_checked_without_calls(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winnow.security.peers._CHECK_INTERVAL", 0.0)
    certificates = Certificates(node.authority.issue("front"))
    following = asyncio.create_task(PeerChannels(certificates).watch_files())
    node.authority.issue("front")
    await happens(lambda: certificates.version == 1)
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following


async def test_a_channel_that_is_closed_leaves_no_connection_open(node: Node) -> None:
    certificates = Certificates(node.authority.issue("front"))
    channel = open_unshared(node.address, PeerChannels(certificates))
    stub = answer_pb2_grpc.AnswerServiceStub(channel)
    calls = [stub.Answer(answer_pb2.AnswerRequest(question="hang"), timeout=60)]
    await node.servicer.hanging.wait()
    node.authority.issue("front")
    certificates.refresh()
    calls.append(stub.Answer(answer_pb2.AnswerRequest(question="hang"), timeout=60))
    await channel.close()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError | grpc.aio.AioRpcError) for each in ended)


async def test_http_takes_no_half_replaced_pair_and_then_the_new_one(
    authority: Authority,
) -> None:
    """gRPC may have looked at the files when they fitted, and HTTP only when they no longer do."""
    files = authority.issue("node", [NAME])
    certificates = Certificates(files)
    context = http_context(certificates)
    renewed = authority.issue("node", ["renewed.winnow.test"])
    certificates.refresh()
    assert renewed.cert is not None
    renewed.cert.write_bytes(Path(authority.issue("next").cert or "").read_bytes())

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    trusting = ssl.create_default_context(cafile=str(authority.ca))
    front = authority.issue("front")
    assert front.cert is not None
    trusting.load_cert_chain(front.cert, front.key)
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trusting, server_hostname="renewed.winnow.test"
    )
    writer.close()
    server.close()
    await server.wait_closed()


async def test_http_has_the_same_certificates(authority: Authority, tmp_path: Path) -> None:
    """New certificates too, and only for clients of the authority."""
    certificates = Certificates(authority.issue("node", [NAME]))

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\n")
        writer.close()

    trusted = authority.ca.read_text()
    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=http_context(certificates))
    port = server.sockets[0].getsockname()[1]

    async def greeted(name: str, files: TlsFiles) -> bytes:
        context = ssl.create_default_context(cadata=trusted)
        if files.cert is not None:
            context.load_cert_chain(files.cert, files.key)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=name
        )
        try:
            return await reader.readline()
        finally:
            writer.close()

    async def refused(name: str, files: TlsFiles) -> bytes:
        """Nothing: a client hears of it when it reads, or by the end of the connection."""
        try:
            return await greeted(name, files)
        except (ssl.SSLError, ConnectionError):
            return b""

    front = authority.issue("front")
    assert await greeted(NAME, front) == b"hello\n"
    authority.issue("node", ["renamed.winnow.test"])
    assert await greeted("renamed.winnow.test", front) == b"hello\n"
    with pytest.raises(ssl.SSLCertVerificationError):
        await greeted(NAME, front)
    assert not await refused("renamed.winnow.test", TlsFiles())
    other = Authority(tmp_path, "other")
    authority.ca.write_bytes(other.ca.read_bytes())
    assert await greeted("renamed.winnow.test", other.issue("client")) == b"hello\n"
    assert not await refused("renamed.winnow.test", front)
    server.close()
    await server.wait_closed()
