"""Whether a front is ready, as HTTP tells it."""


class Readiness:
    """Starting, then ready, then leaving."""

    def __init__(self) -> None:
        self._ready = self._was_ready = self._closed = False

    def say(self, ready: bool) -> None:
        """Changes what is told, unless it was closed."""
        self._ready = ready and not self._closed
        self._was_ready |= self._ready

    def close(self) -> None:
        """Not ready, for ever."""
        self._ready, self._closed = False, True

    @property
    def ready(self) -> bool:
        """Whether it should be sent requests."""
        return self._ready

    @property
    def starting(self) -> bool:
        """Whether it never was ready: models may not be warm, nor shards be found."""
        return not self._was_ready

    @property
    def leaving(self) -> bool:
        """Whether callers should go elsewhere: it still answers."""
        return self._closed or (self._was_ready and not self._ready)
