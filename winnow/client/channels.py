"""Which channel an address gets: to one front node, or to several that share the questions.

An address is `HOST:PORT`, or a gRPC target of several front nodes: `dns:///HOST:PORT` or
`ipv4:ADDRESS:PORT,ADDRESS:PORT`. Of those each call takes one that says it is healthy.
"""

import json

import grpc
import grpc.aio

from winnow.address import Address
from winnow.client.access import Access
from winnow.errors import InvalidRequestError, Violation
from winnow.security.rotating import RotatingChannel

SERVICE = "winnow.v1.AnswerService"
_SEVERAL = ("dns:", "ipv4:", "ipv6:")
_TARGETS = (*_SEVERAL, "unix:")
_Options = list[tuple[str, int | str]]


def check_address(address: str) -> None:
    """Raises InvalidRequestError if it is no address.

    gRPC takes port 443 where none is named, and a port modulo 65536.
    """
    try:
        if not address.startswith(_TARGETS):
            Address.parse(address)
    except ValueError as error:
        problem = f"{address!r} is neither HOST:PORT nor dns:///HOST:PORT"
        raise InvalidRequestError(Violation("address", problem)) from error


def open_channel(address: str, access: Access | None = None) -> grpc.Channel:
    """A channel for threads; connects when first used. Raises as `check_address` does.

    `access`: the credentials that it is made with; plain text if None.
    """
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

    return RotatingChannel(newest, lambda: access.edition)


def _options(address: str) -> _Options:
    check_address(address)
    options: _Options = [
        # a front node that was cut off is noticed within seconds, not minutes
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 3_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # one that came back is found again within a second
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1_000),
        ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    ]
    if address.startswith(_SEVERAL):
        config = {
            "loadBalancingConfig": [{"round_robin": {}}],
            # one that is about to stop says so here first, and gets no further questions. The
            # server as a whole: it may serve heads only
            "healthCheckConfig": {"serviceName": ""},
        }
        options.append(("grpc.service_config", json.dumps(config)))
    return options
