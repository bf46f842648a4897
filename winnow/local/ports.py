"""Free ports on this machine."""

import contextlib
import socket


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now. All are held at once, so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
