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

    @property
    def address(self) -> tuple[str, int]:
        """Of the front, as sockets take it."""
        host, _, port = self.front.rpartition(":")
        return host, int(port)


Attack = Callable[[Target], Coroutine[Any, Any, Counter[str]]]
"""Returns how often each outcome came: the names of gRPC statuses, or words."""
