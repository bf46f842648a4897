"""Free ports that stay reserved until this process ends.

A port that is merely found free can be taken by another test process before its server binds it.
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

    Each is bound by a socket that does not listen. On Linux a server that sets SO_REUSEADDR, as
    ours, Prometheus and NATS do, can listen there all the same; a socket that does not set it,
    as the one with which this function looks, is refused.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            return found
        held = socket.socket(family)
        with contextlib.ExitStack() as failed:
            failed.callback(held.close)
            try:
                held.bind((host, port))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
                continue
            # only now: with the option set before, two reservations of one port would agree
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            failed.pop_all()
        _HELD.append(held)
        found.append(port)
    raise AssertionError(f"this machine does not have {count} free ports")
