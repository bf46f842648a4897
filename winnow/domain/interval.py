"""When something happened, and for how long."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A piece of time, in seconds."""

    start: float = 0.0
    """From the beginning of what it is a part of."""
    seconds: float = 0.0

    def later(self, seconds: float) -> "Interval":
        """The same piece, as a part of what began so much earlier."""
        return Interval(self.start + seconds, self.seconds)


NEVER = Interval()
"""Of what did not happen, or was not measured."""
