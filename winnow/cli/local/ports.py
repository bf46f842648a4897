"""Ports of this machine: finding free ones, and checking that addresses are free."""

import contextlib
import errno
import random
import socket
from collections.abc import Sequence

from winnow.address import Address
from winnow.errors import UnavailableError
from winnow.quoting import many

_LAST_PORT = (1 << 16) - 1
_PORTS = range(20_000, 32_000)
"""Ports below those that Linux, macOS and Windows give to outgoing connections. Any process could
take one of those before its server binds it.
"""


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports that no process listens on now; a random choice, so that others hardly choose the same.

    Raises UnavailableError if the machine has fewer free ports.
    """
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
            if len(found) == count:
                return found
            each = held.enter_context(socket.socket(_family(host)))
            try:
                each.bind((host, port))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
            else:
                found.append(port)
    raise UnavailableError(f"this machine does not have {many(count, 'free port')}")


def chosen(address: Address) -> Address:
    """The address, with a free port of its host if it names none (0).

    Raises UnavailableError if its host is not one of this machine.
    """
    if address.port:
        return address
    try:
        return address.at(free_ports(1, address.host)[0])
    except OSError as error:
        raise _refused(address, error) from error


def or_any(wanted: Address) -> Address:
    """The address, with any free port of its host if it is in use."""
    try:
        expect_free([wanted])
    except UnavailableError:
        return chosen(wanted.at(0))
    return wanted


def consecutive(first: Address, count: int) -> list[Address]:
    """`count` addresses with consecutive ports; all have port 0 if the first one has.

    Raises UnavailableError if the ports would exceed the highest one.
    """
    if first.port + count - 1 > _LAST_PORT:
        raise UnavailableError(
            f"{many(count, 'port')} from {first} on: ports end at {_LAST_PORT}; choose a lower one"
        )
    return [first.at(first.port + number if first.port else 0) for number in range(count)]


def expect_free(addresses: Sequence[Address], flag: str = "") -> None:
    """Raises UnavailableError if one cannot be listened on now, or is named twice.

    Args:
        addresses: to listen on.
        flag: the flag that sets the address, for the error; empty if there are several.

    """
    with contextlib.ExitStack() as held:
        for place, each in enumerate(addresses):
            if each.port and each in addresses[:place]:
                raise UnavailableError(f"{each} is named twice: choose another port for one")
            try:
                family = _family(each.host)
                held.enter_context(socket.create_server((each.host, each.port), family=family))
            except OSError as error:
                raise _refused(each, error, flag) from error


def _refused(address: Address, error: OSError, flag: str = "") -> UnavailableError:
    by = f" with {flag}" if flag else ""
    if error.errno == errno.EADDRINUSE:
        return UnavailableError(
            f"{address} is in use: stop what listens there, or choose another port{by} (0 for any)"
        )
    # `socket.create_server` repeats the address
    reason = str(error.strerror or error).partition(" (while attempting to bind")[0]
    return UnavailableError(
        f"cannot listen on {address}: {reason}{f'; choose another address{by}' * bool(by)}"
    )


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
