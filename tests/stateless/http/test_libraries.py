"""uvicorn and asyncio still have what the HTTP server uses of them beyond what they promise."""

import asyncio
import inspect
import re
import ssl
from pathlib import Path

import pytest
from certificates import Authority
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("__init__", ["self", "config", "server_state", "app_state", "_loop"]),
        ("handle_events", ["self"]),
        ("send_400_response", ["self", "msg"]),
    ],
)
def test_uvicorn_h11protocol_has_the_methods_that_are_overridden(
    method: str, parameters: list[str]
) -> None:
    found = inspect.signature(getattr(H11Protocol, method)).parameters
    assert list(found) == parameters


@pytest.mark.parametrize("attribute", ["conn", "cycle", "flow", "transport"])
def test_uvicorn_h11protocol_has_the_attributes_that_are_read(attribute: str) -> None:
    assert re.search(rf"self\.{attribute}\b.* = ", inspect.getsource(H11Protocol.__init__))


def test_uvicorn_serverstate_has_the_tasks_of_requests() -> None:
    assert ServerState().tasks == set()


async def test_asyncio_transports_over_tls_have_ssl_protocol_and_the_transport_below(
    tmp_path: Path,
) -> None:
    files = Authority(tmp_path).issue("node")
    assert files.cert is not None
    assert files.key is not None
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(files.cert, files.key)
    calling = ssl.create_default_context(cafile=str(files.ca))
    calling.check_hostname = False
    made: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()

    def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.set_result(writer.transport)  # type: ignore[arg-type]

    server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=serving)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=calling)
    transport = await made
    assert transport._ssl_protocol._transport.get_write_buffer_size() == 0  # type: ignore[attr-defined]
    writer.close()
    transport.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()
