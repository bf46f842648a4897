"""Connections over HTTP: how many there are, and how long one may keep the server waiting."""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from http_front import Wire, wire
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.testing import capture_logs
from tenacious import LONG, happens

from winnow.address import Address
from winnow.errors import UnavailableError
from winnow.security.certificates import Certificates, TlsFiles
from winnow.security.serving import http_context
from winnow.stateless.http.accepting import Acceptor
from winnow.stateless.http.app import application
from winnow.stateless.http.connection_limiter import ConnectionLimiter, HttpMetrics
from winnow.stateless.http.outer_app import OuterApp
from winnow.stateless.http.probes import Readiness
from winnow.stateless.http.server import HttpServer

GET = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
FOREVER = 3_600.0


class Site:
    """A server of one page, which may be large, or wait for the word."""

    def __init__(
        self,
        most: int = 8,
        header_timeout: float = FOREVER,
        idle_timeout: float = FOREVER,
        reply_timeout: float = FOREVER,
        app: ASGIApp | None = None,
        tls: ssl.SSLContext | None = None,
        age: float = FOREVER,
    ) -> None:
        self.registry = CollectorRegistry()
        metrics, readiness = HttpMetrics(self.registry), Readiness()
        served = OuterApp(
            app or self._page, readiness, lambda _host: True, metrics, reply_timeout=reply_timeout
        )
        crowd = ConnectionLimiter(
            most,
            metrics,
            header_timeout=header_timeout,
            idle_timeout=idle_timeout,
            reply_timeout=reply_timeout,
        )
        self.server = HttpServer(served, readiness, crowd, tls=tls, age=age)
        self.page, self.parts, self.waits, self.asked = b"hello", 1, False, 0
        self.go_on = asyncio.Event()
        self.address = ""

    async def _page(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.asked += 1
        if self.waits:
            await self.go_on.wait()
        length = str(len(self.page) * self.parts).encode()
        headers = [(b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for part in range(1, self.parts + 1):
            more = part < self.parts
            await send({"type": "http.response.body", "body": self.page, "more_body": more})

    @property
    def open(self) -> float:
        return self.registry.get_sample_value("winnow_http_connections") or 0.0

    def ended(self, reason: str) -> float:
        name, labels = "winnow_http_connections_ended_total", {"reason": reason}
        return self.registry.get_sample_value(name, labels) or 0.0

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["Site"]:
        port = await self.server.start("127.0.0.1:0")
        self.address = f"127.0.0.1:{port}"
        await self.server.set_serving(True)
        try:
            yield self
        finally:
            await self.server.drain(0)


async def status(line: Wire) -> bytes:
    head = await asyncio.wait_for(line.reader.readuntil(b"\r\n\r\n"), LONG)
    return head.split()[1]


async def test_who_never_ends_its_headers_is_cut_off() -> None:
    async with Site(header_timeout=0.05).serving() as site, wire(site.address) as line:
        line.send("GET / HTTP/1.1\r\nx: y")
        await line.closed()
        assert (site.ended("slow"), site.open) == (1, 0)


async def test_who_sends_its_headers_byte_by_byte_is_cut_off_all_the_same() -> None:
    async with Site(header_timeout=0.2).serving() as site, wire(site.address) as line:
        closed = asyncio.create_task(line.closed())
        line.send("GET / HTTP/1.1\r\nx: ")
        while not closed.done():
            line.send("y")
            await asyncio.wait({closed}, timeout=0.01)
        await closed
        assert site.ended("slow") == 1


async def test_the_next_request_of_a_connection_has_no_longer_than_the_first() -> None:
    async with Site().serving() as site, wire(site.address) as line:
        line.send(GET)
        assert await status(line) == b"200"
        await line.reader.readexactly(5)
        crowd = site.server._limiter
        crowd._header_timeout = 0.05
        line.send("GET / HTTP")
        await line.closed()
        assert site.ended("slow") == 1


async def test_who_says_nothing_between_two_requests_is_let_go() -> None:
    async with Site(idle_timeout=0.05).serving() as site, wire(site.address) as line:
        line.send(GET)
        assert await status(line) == b"200"
        await line.reader.readexactly(5)
        await line.closed()
        assert site.ended("idle") == 1


async def test_who_waits_longest_gives_way_to_who_comes() -> None:
    async with Site(most=2).serving() as site, contextlib.AsyncExitStack() as stack:
        lines = []
        for number in range(3):
            lines.append(await stack.enter_async_context(wire(site.address)))
            await happens(lambda: site.open == min(number + 1, 2), LONG)  # noqa: B023
        oldest, *others = lines
        await oldest.closed()
        for line in others:
            line.send(GET)
            assert await status(line) == b"200"
        assert site.ended("crowded") == 1


async def test_who_is_being_answered_gives_way_to_nobody() -> None:
    site = Site(most=1)
    site.waits = True
    async with site.serving(), wire(site.address) as asks:
        asks.send(GET)
        await happens(lambda: site.asked == 1, LONG)
        async with wire(site.address) as late:
            await late.closed()
        site.go_on.set()
        assert await status(asks) == b"200"


async def test_a_hundred_silent_connections_leave_room_for_one_that_asks() -> None:
    async with Site(most=8).serving() as site, contextlib.AsyncExitStack() as stack:
        for _ in range(100):
            silent = await stack.enter_async_context(wire(site.address))
            silent.send("GET / HTTP/1.1\r\n")
        async with wire(site.address) as line:
            line.send(GET)
            assert await status(line) == b"200"
        assert site.open <= 8


@pytest.mark.parametrize("over_tls", [False, True])
async def test_a_body_in_tiny_chunks_takes_turns_with_everybody_else(
    over_tls: bool, tls: ssl.SSLContext, authority: Authority
) -> None:
    """Its forty thousand parts took half a second, in which nobody else was served."""
    chunks = 40_000
    site = Site(app=_length, tls=tls if over_tls else None)
    turns, body = 0, b"1\r\nx\r\n" * chunks + b"0\r\n\r\n"
    async with site.serving(), contextlib.AsyncExitStack() as stack:
        if over_tls:
            line = await trusting(authority, site.address)
            stack.push_async_callback(let_go, line)
        else:
            line = await stack.enter_async_context(wire(site.address))
        line.send("POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        line.send(body)
        replying = asyncio.create_task(line.reply())

        def count() -> None:
            nonlocal turns
            if not replying.done():
                turns += 1
                asyncio.get_running_loop().call_soon(count)

        count()
        assert (await replying)[2] == chunks
        assert turns > chunks / 50
        line.send(GET)
        assert await status(line) == b"200", "and the connection is read on"


async def _length(_scope: Scope, receive: Receive, send: Send) -> None:
    """Says how many bytes the body of the request has."""
    size, more = 0, True
    while more:
        event = await receive()
        size, more = size + len(event["body"]), event["more_body"]
    said = str(size).encode()
    headers = [(b"content-length", str(len(said)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said})


@pytest.mark.parametrize("answered", [True, False])
async def test_a_body_that_is_no_http_ends_its_connection_and_nothing_else(
    answered: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """What was told before stands; a second reply on top of it was a mistake of the server's."""
    site = Site()
    site.waits = not answered
    async with site.serving(), wire(site.address) as line:
        line.send("POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        await happens(lambda: site.asked == 1, LONG)
        if answered:
            assert await status(line) == b"200"
        with capture_logs() as logged:
            line.send("no chunk\r\n\r\n")
            await line.closed()
            site.go_on.set()
            await happens(lambda: not site.server._requests.state.tasks, LONG)
            await happens(lambda: site.open == 0, LONG)
    refusals = [] if answered else ["request refused"]
    assert ([line["event"] for line in logged], caplog.records) == (refusals, [])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def tls(authority: Authority) -> ssl.SSLContext:
    files = authority.issue("node")
    return http_context(Certificates(TlsFiles(cert=files.cert, key=files.key)))


async def trusting(authority: Authority, address: str) -> Wire:
    """A connection over TLS."""
    context = ssl.create_default_context(cafile=str(authority.ca))
    host, _, port = address.rpartition(":")
    opening = asyncio.open_connection(host, int(port), ssl=context, server_hostname="localhost")
    return Wire(*await opening)


async def let_go(line: Wire) -> None:
    """Closes a connection over TLS, which stays open until the other end has agreed."""
    line.writer.close()
    with contextlib.suppress(OSError):
        await asyncio.wait_for(line.writer.wait_closed(), LONG)


async def test_handshakes_that_never_end_take_places_as_connections_do(
    tls: ssl.SSLContext, authority: Authority
) -> None:
    async with Site(most=2, tls=tls).serving() as site, contextlib.AsyncExitStack() as stack:
        lines = []
        for number in range(3):
            lines.append(await stack.enter_async_context(wire(site.address)))
            await happens(lambda: site.open == min(number + 1, 2), LONG)  # noqa: B023
        await lines[0].closed()
        assert site.ended("crowded") == 1
        asks = await trusting(authority, site.address)
        asks.send(GET)
        assert await status(asks) == b"200"
        assert (site.open, site.ended("crowded")) == (2, 2)
        await let_go(asks)


@pytest.mark.parametrize(("age", "closed"), [(0.0, True), (FOREVER, False)])
async def test_a_connection_over_tls_is_made_anew_after_a_while(
    age: float, closed: bool, tls: ssl.SSLContext, authority: Authority
) -> None:
    """Or who is no longer trusted could ask on for ever on the one that it has."""
    async with Site(tls=tls, age=age).serving() as site:
        line = await trusting(authority, site.address)
        line.send(GET)
        head = await asyncio.wait_for(line.reader.readuntil(b"\r\n\r\n"), LONG)
        assert (b"\r\nconnection: close\r\n" in head.lower()) is closed
        await let_go(line)
    async with Site(age=0.0).serving() as site, wire(site.address) as line:
        line.send(GET)
        assert b"close" not in await line.reader.readuntil(b"\r\n\r\n"), "in plain text it stays"


async def test_who_does_not_take_its_reply_over_tls_is_cut_off_as_soon(
    tls: ssl.SSLContext, authority: Authority
) -> None:
    site = Site(reply_timeout=0.05, tls=tls)
    site.page = b"x" * 10_000_000
    async with site.serving():
        line = await trusting(authority, site.address)
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        line.send(GET)
        await happens(lambda: site.ended("unread") == 1, LONG)
        await happens(lambda: site.open == 0, LONG)
        line.writer.transport.abort()


async def test_who_begins_a_handshake_and_stops_is_cut_off(tls: ssl.SSLContext) -> None:
    async with Site(header_timeout=0.05, tls=tls).serving() as site, wire(site.address) as line:
        line.send(b"\x16\x03\x01\x00\xc8\x01")
        await line.closed()
        await happens(lambda: (site.ended("slow"), site.open) == (1, 0), LONG)


async def test_a_handshake_that_fails_gives_its_place_back(tls: ssl.SSLContext) -> None:
    async with Site(tls=tls).serving() as site, wire(site.address) as line:
        line.send(GET)
        await line.closed()
        await happens(lambda: site.open == 0, LONG)


async def test_a_handshake_in_hand_holds_up_no_end(tls: ssl.SSLContext) -> None:
    async with Site(tls=tls).serving() as site, wire(site.address) as line:
        await happens(lambda: site.open == 1, LONG)
        await asyncio.wait_for(site.server.drain(FOREVER), LONG)
        await line.closed()
        assert site.open == 0


async def test_a_lack_of_descriptors_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    came = asyncio.Queue[socket.socket]()
    acceptor = Acceptor(Address("127.0.0.1", 0), came.put_nowait)
    taken, lacking = acceptor._listener, [OSError(errno.EMFILE, "too many open files")]

    class Scarce:
        """As the socket, but for the first time."""

        def fileno(self) -> int:
            return taken.fileno()

        def accept(self) -> Any:
            if lacking:
                raise lacking.pop()
            return taken.accept()

        def close(self) -> None:
            taken.close()

    monkeypatch.setattr("winnow.stateless.http.accepting._PAUSE", 0.01)
    port = acceptor.port
    monkeypatch.setattr(acceptor, "_listener", Scarce())
    async with wire(f"127.0.0.1:{port}"):
        (await asyncio.wait_for(came.get(), LONG)).close()
    assert not lacking
    acceptor.close()


@pytest.mark.parametrize("parts", [1, 3])
async def test_who_does_not_take_its_reply_is_cut_off(parts: int) -> None:
    site = Site(reply_timeout=0.05)
    site.page, site.parts = b"x" * 10_000_000, parts
    async with site.serving(), wire(site.address) as line:
        line.send(GET)
        await happens(lambda: site.ended("unread") == 1, LONG)
        await happens(lambda: site.open == 0, LONG)


async def test_what_is_no_http_is_refused() -> None:
    async with Site().serving() as site, wire(site.address) as line:
        line.send(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        assert await status(line) == b"400"
        await line.closed()
        await happens(lambda: site.open == 0, LONG)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_what_is_no_http_behind_a_request_is_refused_as_a_problem(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Site().serving() as site, wire(site.address) as line:
        line.send(GET.replace("GET", method))
        assert await status(line) == b"200"
        if method == "GET":
            await line.reader.readexactly(5)
        line.send("nonsense\r\n\r\n")
        code, headers, problem = await line.reply()
        assert (code, headers["content-type"]) == (400, "application/problem+json")
        assert problem["violations"][0]["field"] == "request"
        await line.closed()
    assert not caplog.records


async def test_a_connection_that_was_refused_and_stays_is_cut_off() -> None:
    async with Site(header_timeout=0.05).serving() as site, wire(site.address) as line:
        line.send("nonsense\r\n\r\n")
        await line.closed()
        await happens(lambda: site.open == 0, LONG)


async def test_no_part_of_a_reply_waits_until_the_one_before_is_confirmed() -> None:
    """Nagle's algorithm: the body would come 40 ms after the headers."""
    async with Site().serving() as site, wire(site.address) as line:
        line.send(GET)
        assert await status(line) == b"200"
        (connection,) = site.server._requests.state.connections
        opened = connection.transport.get_extra_info("socket")
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_an_address_that_is_taken_is_an_error() -> None:
    async with Site().serving() as site:
        with pytest.raises(UnavailableError, match=f"cannot listen on {site.address}"):
            await Site().server.start(site.address)


async def test_a_server_that_was_never_started_can_be_drained() -> None:
    await Site().server.drain(0)


async def test_it_can_listen_on_ipv6() -> None:
    site = Site()
    port = await site.server.start("[::1]:0")
    reader, writer = await asyncio.open_connection("::1", port)
    writer.write(GET.encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    await site.server.drain(0)


async def test_a_mistake_in_a_page_is_told_without_its_words() -> None:
    async def broken(_request: Request) -> Response:
        raise RuntimeError("a secret of this machine")

    edge: Any = None
    site = Site(app=application([], edge, [Route("/", broken)]))
    async with site.serving(), wire(site.address) as line:
        line.send(GET)
        status, headers, problem = await line.reply()
        assert (status, headers["content-type"]) == (500, "application/problem+json")
        assert "secret" not in str(problem)
        assert problem["requestId"] == headers["x-request-id"]
        line.send(GET)
        assert (await line.reply())[0] == 500, "the connection is as good as before"
