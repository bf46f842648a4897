"""Finds and reserves free ports of this machine, and checks that addresses are free."""

import atexit
import contextlib
import errno
import random
import socket

from winnow.address import Address
from winnow.errors import UnavailableError
from winnow.quoting import many

_reserved = contextlib.ExitStack()
"""Holds a socket for each reserved port. None of them listens."""
atexit.register(_reserved.close)
_LAST_PORT = (1 << 16) - 1
_PORTS = range(20_000, 32_000)
"""Ports below the ephemeral ports of Linux, macOS and Windows.

An outgoing connection could take an ephemeral port before the server binds it.
"""


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Chooses random free ports, and reserves them as `reserve` does.

    Raises UnavailableError if the machine has fewer free ports.
    """
    ports: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(ports) == count:
            return ports
        if reserve(port, host):
            ports.append(port)
    raise UnavailableError(f"this machine does not have {many(count, 'free port')}")


def reserve(port: int, host: str = "127.0.0.1") -> bool:
    """Reserves a port until this process ends; returns False if the port is in use.

    Nobody else can reserve the port, so that it is still free when a child of this process listens
    there, which on a busy machine is seconds later. The child has to set SO_REUSEADDR, as servers
    do. On systems that do not let it listen on a reserved port, nothing is reserved.
    """
    with contextlib.ExitStack() as unused:
        held = unused.enter_context(socket.socket(_family(host)))
        try:
            held.bind((host, port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            return False
        # set after bind: set before it, two reservations of one port would both succeed
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Linux can; macOS, Windows and some sandboxes of containers cannot
        if _can_listen(host, port):
            _reserved.enter_context(unused.pop_all())
    return True


def _can_listen(host: str, port: int) -> bool:
    try:
        socket.create_server((host, port), family=_family(host)).close()
    except OSError:
        return False
    return True


def with_free_port(address: Address) -> Address:
    """The address, with a free port of its host instead of port 0.

    Raises UnavailableError if its host is not one of this machine.
    """
    if address.port:
        return address
    try:
        return address.at(free_ports(1, address.host)[0])
    except OSError as error:
        raise _listen_error(address, error) from error


def with_fallback_port(address: Address, *others: Address) -> Address:
    """The address; if it is in use or has the port of one of `others`, its host with a free port.

    Other hosts may include this one, such as 0.0.0.0, or be another name of it.
    """
    if all(address.port != each.port for each in others):
        with contextlib.suppress(UnavailableError):
            require_free((address, ""))
            return address
    return with_free_port(address.at(0))


def consecutive_addresses(first: Address, count: int) -> list[Address]:
    """`count` addresses with consecutive ports. Port 0 stays 0 for all of them.

    Raises UnavailableError if the ports would exceed the highest one.
    """
    if first.port + count - 1 > _LAST_PORT:
        raise UnavailableError(
            f"cannot use {many(count, 'port')} from {first} on: the highest port is {_LAST_PORT}; "
            "choose a lower first port"
        )
    return [first.at(first.port + number if first.port else 0) for number in range(count)]


def require_free(*addresses: tuple[Address, str]) -> None:
    """Raises UnavailableError if an address cannot be bound now, or is listed twice.

    With each address comes the flag that sets it, for the message; empty for none.
    """
    flags: dict[Address, str] = {}
    with contextlib.ExitStack() as sockets:
        for each, flag in addresses:
            if each.port and each in flags:
                raise UnavailableError(
                    f"{each} is used twice, by {flags[each]} and {flag}: change one of the two"
                )
            flags[each] = flag
            try:
                family = _family(each.host)
                sockets.enter_context(socket.create_server((each.host, each.port), family=family))
            except OSError as error:
                raise _listen_error(each, error, flag) from error


def _listen_error(address: Address, error: OSError, flag: str = "") -> UnavailableError:
    with_flag = f" with {flag}" if flag else ""
    if error.errno == errno.EADDRINUSE:
        return UnavailableError(
            f"{address} is in use: stop what listens there, or choose another port{with_flag}, "
            f"such as {address.at(0)} for any free port"
        )
    # without the address, which `socket.create_server` appends
    reason = str(error.strerror or error).partition(" (while attempting to bind")[0]
    return UnavailableError(
        f"cannot listen on {address}: {reason}{f'; choose another address{with_flag}' * bool(flag)}"
    )


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
