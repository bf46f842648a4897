"""Free ports that stay reserved until this process ends.

Without a reservation, another test process can take a free port before a server binds it.
"""

import contextlib
import errno
import random
import socket

_PORTS = range(20_000, 32_000)
"""Below the ports that systems give to outgoing connections."""
_HELD: list[socket.socket] = []


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Reserves ports: nothing listens there, and no other call of this function returns them.

    A socket that does not listen binds each port. On Linux, a server that sets SO_REUSEADDR (as
    ours, Prometheus and NATS do) can still listen there. A socket that does not set it is refused,
    such as the one that this function binds first.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            return found
        if (held := _reserved(host, port)) is not None:
            _HELD.append(held)
            found.append(port)
    raise AssertionError(f"this machine does not have {count} free ports")


def free_pair(host: str = "127.0.0.1") -> int:
    """Reserves two consecutive ports, as `free_ports` does; returns the first of them."""
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if (first := _reserved(host, port)) is None:
            continue
        if (second := _reserved(host, port + 1)) is not None:
            _HELD.extend((first, second))
            return port
        first.close()
    raise AssertionError("this machine does not have two consecutive free ports")


def _reserved(host: str, port: int) -> socket.socket | None:
    """Returns a socket that holds a port; None if the port is in use."""
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    with contextlib.ExitStack() as failed:
        failed.callback(held.close)
        try:
            held.bind((host, port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            return None
        # set after bind: set before it, two reservations of one port would both succeed
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        failed.pop_all()
    return held
