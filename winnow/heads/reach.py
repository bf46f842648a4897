"""Whether a store of heads can be reached; what is said of that, once each time it changes."""

import structlog

_log = structlog.get_logger("heads")


class Reach:
    """Told by all who read the store."""

    def __init__(self) -> None:
        self._there = True

    def found(self) -> None:
        """The store answered."""
        if not self._there:
            _log.info("the head store can be reached again")
        self._there = True

    def lost(self, error: Exception) -> None:
        """It did not."""
        if self._there:
            _log.warning(
                "the head store cannot be reached: heads in memory serve on", error=str(error)
            )
        self._there = False
