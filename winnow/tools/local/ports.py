"""Free ports on this machine."""

import contextlib
import errno
import random
import socket

from winnow.errors import UnavailableError

_PORTS = range(20_000, 32_000)
"""Below those that Linux, macOS and Windows give to connections that go out: one of those would be
taken by the next connection of any process before its server binds it.
"""


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now, chosen at random so that others hardly choose them, too.

    Raises:
        UnavailableError: there are not so many.

    """
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
            if len(found) == count:
                return found
            each = held.enter_context(socket.socket())
            try:
                each.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
            else:
                found.append(port)
    raise UnavailableError(f"there are no {count} free ports on this machine")
