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
            # set after bind: set before it, two reservations of one port would both succeed
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            failed.pop_all()
        _HELD.append(held)
        found.append(port)
    raise AssertionError(f"this machine does not have {count} free ports")
