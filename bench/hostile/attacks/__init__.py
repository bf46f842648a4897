"""What is done to a cluster, each against its addresses and for so many seconds."""

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """What is attacked, and how long."""

    front: str
    """HOST:PORT."""
    node: str
    """HOST:PORT of a content node."""
    seconds: float
    seed: int
    http: str = ""
    """HOST:PORT where the front serves HTTP."""

    @property
    def address(self) -> tuple[str, int]:
        """Of the front, as sockets take it."""
        return _address(self.front)

    @property
    def http_address(self) -> tuple[str, int]:
        """Of its HTTP."""
        return _address(self.http)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


Attack = Callable[[Target], Coroutine[Any, Any, Counter[str]]]
"""Returns how often each outcome came: the names of gRPC statuses, or words."""
