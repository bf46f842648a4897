"""Heads that are run in the thread that encodes a text, before the encoding is handed over.

A head takes a tenth of a millisecond; to hand states over to another thread, and results back,
takes longer. Knows heads in memory; what was not run is left to `Heads.apply`.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied
from winnow.heads.piece import Piece
from winnow.text.encoder import TextEncoding


class Ahead:
    """What some heads say of one text, as soon as it is encoded."""

    def __init__(
        self, piece: Piece | None = None, applied: Callable[[], list[Applied]] = list
    ) -> None:
        """`piece`: the heads; None for none. `applied`: ends it, and says what became of those that
        were run.
        """
        self._piece, self._applied = piece, applied
        self.seconds = 0.0
        """That the heads took."""

    def run(self, encoding: TextEncoding) -> None:
        """Runs them, in the thread that calls; does nothing once `applied` was called."""
        if self._piece is not None and encoding.states is not None:
            began = time.perf_counter()
            self._piece.work(encoding.states)
            self.seconds = time.perf_counter() - began

    def applied(self) -> list[Applied]:
        """The heads that were run. To be called once, by whoever waited for the encoding."""
        return self._applied()


BeginAhead = Callable[[Sequence[str], Deadline], AbstractContextManager[Ahead]]
"""Heads by their ids, to be run before a deadline."""


@contextlib.contextmanager
def nothing_ahead(_ids: Sequence[str], _deadline: Deadline) -> Iterator[Ahead]:
    """No head is run ahead."""
    yield Ahead()
