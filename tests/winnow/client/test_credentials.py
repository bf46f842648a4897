"""Clients that prove who they are, against a front with certificates and keys, over real gRPC."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from pydantic import SecretStr
from scripted_front import ScriptedFront, full_reply, scripted_front
from tenacious import LONG, happens
from unreadable import without_descriptors

from winnow.client import AsyncClient, Client, Credentials, Reply
from winnow.client.credentials import LiveCredentials
from winnow.client.frameworks.connection import WinnowConnection
from winnow.client.messages import AnswerClient
from winnow.errors import (
    InvalidRequestError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
)
from winnow.keys.gate import Gate
from winnow.keys.key import Key, Scope
from winnow.keys.token import digest_of, new_token
from winnow.rpc.guard import KeyGuard
from winnow.security.certificates import Certificates
from winnow.security.from_settings import ServerSecurity
from winnow.v1 import answer_pb2

NAME = "front.winnow.test"


def key(token: str, name: str = "alice", scope: Scope = Scope.ASK) -> Key:
    return Key(name=name, digest=digest_of(token), scopes=frozenset({scope}))


class Guarded:
    """A front with certificates and keys, and the files of one client."""

    def __init__(self, front: ScriptedFront, gate: Gate, authority: Authority) -> None:
        self.front, self.gate, self.authority = front, gate, authority
        self.directory = authority.ca.parent
        self.files = authority.issue("client")
        self.token_file = self.directory / "token"
        self.hand_out("alice")

    def hand_out(self, name: str) -> None:
        """Makes a new key the only one, and writes its token into the client's file."""
        token = new_token()
        self.token_file.write_text(f"{token}\n")
        self.gate.update([key(token, name)])

    def credentials(self, **changed: Any) -> Credentials:
        files = self.files
        given = {
            "ca": files.ca,
            "cert": files.cert,
            "key": files.key,
            "token_file": self.token_file,
            "server_name": NAME,
        }
        return Credentials(**{**given, **changed})


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    authority, gate = Authority(tmp_path), Gate([])
    certificates = Certificates(authority.issue("front", [NAME]))
    door = KeyGuard(gate, lambda _method, _metadata: None)
    async with scripted_front(security=ServerSecurity(certificates), reject=door) as front:
        front.reply = full_reply()
        yield Guarded(front, gate, authority)


class InThread:
    """A `Client`, used in threads so that the event loop of the front node runs."""

    def __init__(self, address: str, **named: Any) -> None:
        self.client = Client(address, **named)

    async def ask(self, question: str) -> Reply:
        return await asyncio.to_thread(self.client.ask, question, timeout=LONG)

    async def close(self) -> None:
        await asyncio.to_thread(self.client.close)


@contextlib.asynccontextmanager
async def asking(kind: Any, guarded: Guarded, **changed: Any) -> AsyncIterator[Any]:
    made = kind(guarded.front.address, credentials=guarded.credentials(**changed))
    try:
        yield made
    finally:
        await made.close()


PLAIN = {"ca": None, "cert": None, "key": None, "server_name": "", "token_file": None}
BOTH = pytest.mark.parametrize("kind", [InThread, AsyncClient])


@BOTH
async def test_a_client_with_a_certificate_and_a_token_is_answered(
    guarded: Guarded, kind: Any
) -> None:
    async with asking(kind, guarded) as client:
        assert (await client.ask("Who?")).answer


async def test_tools_that_measure_have_the_same_credentials(guarded: Guarded) -> None:
    async with AnswerClient(guarded.front.address, credentials=guarded.credentials()) as client:
        await client.expect_serving()
        assert await client.ask(answer_pb2.AnswerRequest(question="Who?"), LONG)


async def test_components_of_frameworks_have_the_same_credentials(guarded: Guarded) -> None:
    files = guarded.files
    connection = WinnowConnection(
        address=guarded.front.address,
        token=SecretStr(guarded.token_file.read_text().strip()),
        ca=files.ca,
        cert=files.cert,
        key=files.key,
        server_name=NAME,
    )
    clients = connection.clients
    assert (await asyncio.to_thread(clients.client.ask, "Who?")).answer
    assert (await clients.async_client.ask("Who?")).answer
    clients.close()
    await clients.close_async()


@BOTH
@pytest.mark.parametrize(
    ("changed", "kind_of_error", "said"),
    [
        ({"token_file": None}, UnauthenticatedError, "no key was sent"),
        ({"token_file": None, "token": "wrong"}, UnauthenticatedError, "the key is unknown"),
        ({"cert": None, "key": None}, UnavailableError, "the server may expect TLS"),
        (PLAIN, UnavailableError, "the server may expect TLS"),
        ({"server_name": "other.winnow.test"}, UnavailableError, "another authority or name"),
        ({"server_name": ""}, UnavailableError, "another authority or name"),
    ],
)
async def test_who_lacks_something_is_told_what(
    guarded: Guarded, kind: Any, changed: Any, kind_of_error: Any, said: str
) -> None:
    async with asking(kind, guarded, **changed) as client:
        with pytest.raises(kind_of_error, match=said):
            await client.ask("Who?")


@BOTH
async def test_tls_with_a_front_that_speaks_none_is_named(guarded: Guarded, kind: Any) -> None:
    async with scripted_front() as plain:
        client = kind(plain.address, credentials=guarded.credentials(token_file=None))
        with pytest.raises(UnavailableError, match="serves no TLS: leave out --tls"):
            await client.ask("Who?")
        await client.close()


@BOTH
async def test_a_port_of_http_is_named(kind: Any) -> None:
    """The page's port is the first that a newcomer sees."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 421 Misdirected Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        client = kind(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(UnavailableError, match="8080 to ask or 8081 to feed"):
            await client.ask("Who?")
        await client.close()


@BOTH
async def test_a_port_of_https_is_named(guarded: Guarded, kind: Any) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    files = guarded.authority.issue("web", [NAME])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    assert files.cert is not None
    context.load_cert_chain(files.cert, files.key)
    context.set_alpn_protocols(["http/1.1"])
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = kind(address, credentials=guarded.credentials())
        with pytest.raises(UnavailableError, match="8080 to ask or 8081 to feed"):
            await client.ask("Who?")
        await client.close()


@BOTH
async def test_a_front_of_another_authority_is_not_believed(
    guarded: Guarded, kind: Any, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger")
    async with asking(kind, guarded, ca=stranger.ca) as client:
        with pytest.raises(UnavailableError, match="another authority or name"):
            await client.ask("Who?")
    assert not guarded.front.requests


@BOTH
async def test_what_a_key_is_not_for_is_refused(guarded: Guarded, kind: Any) -> None:
    token = new_token()
    guarded.gate.update([key(token, scope=Scope.FEED)])
    async with asking(kind, guarded, token_file=None, token=token) as client:
        with pytest.raises(PermissionDeniedError, match="lacks the scope 'ask'"):
            await client.ask("Who?")


@BOTH
async def test_a_new_token_is_sent_with_the_next_call(guarded: Guarded, kind: Any) -> None:
    """And a file that is gone for a moment changes nothing."""
    async with asking(kind, guarded) as client:
        await client.ask("Who?")
        guarded.hand_out("bob")
        await client.ask("Who?")
        guarded.token_file.write_text("")
        await client.ask("Who?")
        guarded.token_file.unlink()
        await client.ask("Who?")


@BOTH
async def test_new_certificates_are_used_for_new_calls(
    guarded: Guarded, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has expired is no longer let in; the next one is."""
    monkeypatch.setattr("winnow.client.credentials._CHECK_INTERVAL", 0.0)
    async with asking(kind, guarded) as client:
        await client.ask("Who?")
        guarded.authority.issue("client", days=-1)
        with pytest.raises(UnavailableError):
            await client.ask("Who?")
        guarded.authority.issue("client")
        assert (await client.ask("Who?")).answer


@BOTH
async def test_calls_in_hand_outlive_their_certificates(
    guarded: Guarded, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("winnow.client.credentials._CHECK_INTERVAL", 0.0)
    guarded.front.hangs = True
    async with asking(kind, guarded) as client:
        first = asyncio.ensure_future(client.ask("first"))
        await happens(lambda: len(guarded.front.requests) == 1)
        guarded.authority.issue("client")
        second = asyncio.ensure_future(client.ask("second"))
        await happens(lambda: len(guarded.front.requests) == 2)
        assert not first.done()
        for call in (first, second):
            call.cancel()
        await asyncio.wait([first, second], timeout=0)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "unix:/run/x", "dns:///localhost:1"],
)
async def test_a_token_may_travel_in_plain_text_on_this_machine(address: str) -> None:
    async with AsyncClient(address, credentials=Credentials(token="t")):
        pass


@pytest.mark.parametrize(
    "address", ["10.0.0.1:8080", "front:8080", "dns:///front:8080", "ipv4:127.0.0.1:1,10.0.0.1:1"]
)
def test_a_token_does_not_travel_in_plain_text_to_another_machine(address: str) -> None:
    with pytest.raises(InvalidRequestError, match="in plain text: give `ca`"):
        Client(address, credentials=Credentials(token="t"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cert": "c"}, "a certificate and its key"),
        ({"cert": "c", "key": "k"}, "needs TLS"),
        ({"server_name": "n"}, "needs TLS"),
        ({"token": "t", "token_file": "f"}, "not both"),
        ({"token": "secret\nsecret"}, "contains characters that no token has"),
        ({"token": "é"}, "contains characters that no token has"),
    ],
)
def test_credentials_that_make_no_sense_are_refused(given: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        Credentials(**given)


@pytest.mark.parametrize("content", [None, "", "two words", "secret\nsecret", "é", "x\0"])
def test_a_file_without_a_token_is_refused_and_not_quoted(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidRequestError, match=r"cannot use .*token") as caught:
        Client(credentials=Credentials(token_file=path))
    assert "secret" not in str(caught.value)


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="cannot read"):
        Client(credentials=Credentials(ca=tmp_path / "nothing"))


def test_a_token_is_never_shown() -> None:
    assert "hidden" not in repr(Credentials(token="hidden"))


def test_a_new_token_is_sent_after_a_read_of_its_file_that_failed(tmp_path: Path) -> None:
    older, newer, file = new_token(), new_token(), tmp_path / "token"
    file.write_text(older)
    access = LiveCredentials("127.0.0.1:1", Credentials(token_file=file))
    file.write_text(newer)
    with without_descriptors():
        assert access.metadata() == (("authorization", f"Bearer {older}"),)
    assert access.metadata() == (("authorization", f"Bearer {newer}"),)
