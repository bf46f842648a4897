"""Whether something that lasts may go on. Pure: knows no clock, and nothing of what lasts."""

from collections.abc import Callable

from winnow.errors import WinnowError


class Lease:
    """Given to a stream when it begins, and ended when it must not go on."""

    def __init__(self, pause: Callable[[], float] = lambda: 0.0) -> None:
        """`pause`: the seconds until the next part may come; at 0 the part is counted."""
        self.pause = pause
        self.ended: WinnowError | None = None
        """Why it may not go on; None if it may."""
        self._tell: Callable[[WinnowError], None] = _nobody

    def end(self, why: WinnowError) -> None:
        """Whoever holds it must not go on; who waits is told at once."""
        self.ended = why
        self._tell(why)

    def tell(self, waiting: Callable[[WinnowError], None]) -> None:
        """Who is told of the end from now on, instead of who was before."""
        self._tell = waiting


def _nobody(_why: WinnowError) -> None:
    """Nobody waits."""
