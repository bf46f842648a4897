"""Channels of clients: to one front node, or to several that share the questions.

An address is `HOST:PORT`, or a gRPC target of several front nodes: `dns:///HOST:PORT` or
`ipv4:ADDRESS:PORT,ADDRESS:PORT`. Of several, each call goes to one that reports itself healthy.
"""

import json
import threading

import grpc
import grpc.aio

from winnow.address import Address
from winnow.client.credentials import Access
from winnow.errors import InvalidRequestError, Violation
from winnow.rpc.channel import OPTIONS
from winnow.security.rotating import RotatingChannel

SERVICE = "winnow.v1.AnswerService"
_SEVERAL = ("dns:", "ipv4:", "ipv6:")
_TARGETS = (*_SEVERAL, "unix:")
_Options = list[tuple[str, int | str]]


def check_address(address: str) -> None:
    """Raises InvalidRequestError if `address` is neither HOST:PORT nor a gRPC target.

    gRPC takes port 443 where none is named, and a port modulo 65536.
    """
    try:
        if not address.startswith(_TARGETS):
            Address.parse(address)
    except ValueError as error:
        problem = f"{address!r} is neither HOST:PORT nor dns:///HOST:PORT"
        raise InvalidRequestError(Violation("address", problem)) from error


def open_channel(address: str, access: Access | None = None) -> grpc.Channel:
    """A channel for threads, in plain text without `access`; connects when first used."""
    options = _options(address)
    if access is None or (credentials := access.credentials) is None:
        return grpc.insecure_channel(address, options=options)
    return grpc.secure_channel(address, credentials, options=[*options, *access.options])


def open_aio_channel(address: str, access: Access | None = None) -> grpc.aio.Channel:
    """The same for the running event loop; it follows the files of its credentials."""
    options = _options(address)
    if access is None or access.credentials is None:
        return grpc.aio.insecure_channel(address, options=options)

    def newest() -> grpc.aio.Channel:
        credentials = access.credentials
        assert credentials is not None
        return grpc.aio.secure_channel(address, credentials, options=[*options, *access.options])

    return RotatingChannel(newest, lambda: access.version)


class ThreadedChannel:
    """The channel of a client for threads, replaced when its certificates change."""

    def __init__(self, address: str, access: Access) -> None:
        self._address, self._access = address, access
        self._lock = threading.Lock()
        self._version = access.version
        self._newest = open_channel(address, access)
        self._previous: grpc.Channel | None = None
        """The channel of calls that began before the last change. Without calls a channel soon
        closes its connection, so it is closed with the next change.
        """

    @property
    def newest(self) -> grpc.Channel:
        """The channel for new calls."""
        if self._access.version != self._version:
            self._renew()
        return self._newest

    def close(self) -> None:
        """Ends all calls."""
        with self._lock:
            for each in filter(None, (self._newest, self._previous)):
                each.close()

    def _renew(self) -> None:
        with self._lock:
            if (version := self._access.version) == self._version:
                return  # another thread was faster
            if self._previous is not None:
                self._previous.close()
            self._previous = self._newest
            self._newest = open_channel(self._address, self._access)
            self._version = version


def _options(address: str) -> _Options:
    check_address(address)
    options: _Options = list(OPTIONS)
    if address.startswith(_SEVERAL):
        config = {
            "loadBalancingConfig": [{"round_robin": {}}],
            # the health of the server as a whole, since it may serve heads only. A front node that
            # is about to stop reports it here first, and gets no further questions
            "healthCheckConfig": {"serviceName": ""},
        }
        options.append(("grpc.service_config", json.dumps(config)))
    return options
