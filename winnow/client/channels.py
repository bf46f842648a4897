"""Channels of clients: to one front node, or balanced over several.

An address is `HOST:PORT`, or a gRPC target of several front nodes: `dns:///HOST:PORT` or
`ipv4:ADDRESS:PORT,ADDRESS:PORT`. Calls are spread over the front nodes that report SERVING.
"""

import json
import threading

import grpc
import grpc.aio

from winnow.address import Address
from winnow.client.credentials import LiveCredentials
from winnow.errors import invalid_field
from winnow.rpc.channel import OPTIONS
from winnow.security.rotating import RotatingChannel

SERVICE = "winnow.v1.AnswerService"
SERVICES = (SERVICE, "winnow.v1.ReadService")
"""Services that a server for this client may have. A server without an index has only the last."""
_BALANCED = ("dns:", "ipv4:", "ipv6:")
_TARGETS = (*_BALANCED, "unix:")
_Options = list[tuple[str, int | str]]


def check_address(address: str) -> None:
    """Raises InvalidRequestError if `address` is neither HOST:PORT nor a gRPC target.

    Without this check, gRPC would use port 443 if the port is missing, and ports above 65535
    modulo 65536.
    """
    try:
        if not address.startswith(_TARGETS):
            Address.parse(address)
    except ValueError as error:
        problem = f"{address!r} is neither HOST:PORT nor dns:///HOST:PORT"
        raise invalid_field("address", problem) from error


def open_channel(address: str, live: LiveCredentials | None = None) -> grpc.Channel:
    """Opens a synchronous channel, which connects when it is first used.

    It uses plain text if `live` is None or has no TLS.
    """
    options = _options(address)
    if live is None or (credentials := live.channel_credentials()) is None:
        return grpc.insecure_channel(address, options=options)
    return grpc.secure_channel(address, credentials, options=[*options, *live.options])


def open_aio_channel(address: str, live: LiveCredentials | None = None) -> grpc.aio.Channel:
    """Opens an asyncio channel, which uses new certificates when their files change.

    It uses plain text if `live` is None or has no TLS.
    """
    options = _options(address)
    if live is None or live.channel_credentials() is None:
        return grpc.aio.insecure_channel(address, options=options)

    def open_current() -> grpc.aio.Channel:
        credentials = live.channel_credentials()
        assert credentials is not None
        return grpc.aio.secure_channel(address, credentials, options=[*options, *live.options])

    return RotatingChannel(open_current, lambda: live.version)


class ThreadedChannel:
    """The channel of a synchronous client. It is replaced when the certificates change."""

    def __init__(self, address: str, live: LiveCredentials) -> None:
        self._address, self._live = address, live
        self._lock = threading.Lock()
        self._version = live.version
        self._newest = open_channel(address, live)
        self._previous: grpc.Channel | None = None
        """The channel of calls that began before the last change; closed at the next change.

        It does not keep its connection for long, because gRPC closes idle connections.
        """

    @property
    def newest(self) -> grpc.Channel:
        """The channel for new calls."""
        if self._live.version != self._version:
            self._renew()
        return self._newest

    def close(self) -> None:
        """Closes the channels, and cancels their running calls."""
        with self._lock:
            for each in filter(None, (self._newest, self._previous)):
                each.close()

    def _renew(self) -> None:
        with self._lock:
            if (version := self._live.version) == self._version:
                return  # another thread has replaced the channel
            if self._previous is not None:
                self._previous.close()
            self._previous = self._newest
            self._newest = open_channel(self._address, self._live)
            self._version = version


def _options(address: str) -> _Options:
    check_address(address)
    options: _Options = list(OPTIONS)
    if address.startswith(_BALANCED):
        config = {
            "loadBalancingConfig": [{"round_robin": {}}],
            # The empty name means the whole server, which may serve only heads. A front node that
            # drains reports NOT_SERVING here first, and so gets no new calls
            "healthCheckConfig": {"serviceName": ""},
        }
        options.append(("grpc.service_config", json.dumps(config)))
    return options
