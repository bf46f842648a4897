"""Pieces of work shared out among workers that come and go.

Knows who has how much in hand, and nothing of what a worker is. Pure but for the crew it is given.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

from winnow.content_node.indexing.workers.piece import Came, EncodedBatch, Event, Lost, PassageBatch
from winnow.errors import UnavailableError

AHEAD = 2
"""Pieces that a worker has in hand, so that the next one is there when it has done one."""


class NumberedWorkers(Protocol):
    """Workers, by number."""

    @property
    def size(self) -> int:
        """How many there are, or will be."""

    def give(self, worker: int, piece: PassageBatch) -> None:
        """Has a worker encode a piece, after those that it has in hand; returns at once."""

    def next(self) -> Event:
        """Waits for what happens next."""


def share_out(pieces: Iterable[PassageBatch], crew: NumberedWorkers) -> Iterator[Event]:
    """Has every piece encoded; tells of each event once it was dealt with.

    A worker that comes late joins in. What a lost one had in hand goes to the others.

    Raises:
        UnavailableError: every worker is lost, and something is left to do.

    """
    todo, hands = _Todo(pieces), dict[int, int]()
    lost = 0
    while True:
        event = crew.next()
        match event:
            case Came():
                hands[event.worker] = 0
            case EncodedBatch():
                hands[event.worker] -= 1
            case Lost():
                lost += 1
                hands.pop(event.worker, None)
                todo.again(event.pieces)
                if lost == crew.size:
                    raise UnavailableError(f"every worker is lost, the last one: {event.reason}")
        _fill(hands, todo, crew)
        yield event
        if hands and not any(hands.values()):
            return


def _fill(hands: dict[int, int], todo: "_Todo", crew: NumberedWorkers) -> None:
    """Gives out what there is, to the least busy first."""
    while hands:
        worker = min(hands, key=hands.__getitem__)
        if hands[worker] == AHEAD or (piece := todo.take()) is None:
            return
        hands[worker] += 1
        crew.give(worker, piece)


class _Todo:
    """Pieces that nobody has in hand."""

    def __init__(self, pieces: Iterable[PassageBatch]) -> None:
        self._source, self._again = iter(pieces), deque[PassageBatch]()

    def take(self) -> PassageBatch | None:
        """The next one; None if there is none now."""
        return self._again.popleft() if self._again else next(self._source, None)

    def again(self, pieces: Iterable[PassageBatch]) -> None:
        """Adds pieces that somebody had in hand."""
        self._again.extend(pieces)
