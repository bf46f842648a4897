"""The generations of a shard that a node serves: the newest, and older ones that are asked for.

A shard never changes; new passages come as a new generation of it. A hit names a row of the one it
was found in, so that one is kept while its question may come back to read.

Everything here is called on the event loop, where no call interrupts another: there is no lock for
a question to wait at. Threads hold the `Shard` that they were given. What nobody holds any more is
closed: a shard that is dropped here ends with the last of its readers.
"""

from dataclasses import dataclass

from content_node.shard.shard import Shard
from winnow.deadline import Clock, Deadline
from winnow.errors import GenerationGoneError
from winnow.quoting import shortened

_QUESTION = 4.0
"""How many times as long as its retrieval may take a question may last: fronts give retrieval a
share of the time, 0.4 unless they are set up otherwise, and read in the rest.
"""
_LONGEST = 60.0
"""Seconds after which a generation is let go whatever deadline a question has: each is a graph in
memory, and who comes back too late retrieves again.
"""


@dataclass(slots=True)
class _Generation:
    """A shard, and how long it may be asked for."""

    shard: Shard
    until: float
    """By the clock."""


class Generations:
    """One shard as it was lately."""

    def __init__(self, shard: Shard, clock: Clock) -> None:
        self._clock = clock
        self._newest = _Generation(shard, clock())
        self._older: dict[str, _Generation] = {}

    @property
    def newest(self) -> Shard:
        """What is served now."""
        self.let_go()
        return self._newest.shard

    def let_go(self) -> None:
        """Forgets what nobody can come back for."""
        now = self._clock()
        self._older = {name: older for name, older in self._older.items() if older.until > now}

    def serve(self, shard: Shard) -> None:
        """From now on `shard` is the newest; the one before is kept while it may be asked for."""
        before = self._newest
        self._older[before.shard.generation] = before
        self._older.pop(shard.generation, None)
        self._newest = _Generation(shard, self._clock())
        self.let_go()

    def lease(self, deadline: Deadline) -> Shard:
        """The newest, for a retrieval; kept as long as its question may last."""
        shard = self.newest
        self._keep(self._newest, min(deadline.left() * _QUESTION, _LONGEST))
        return shard

    def named(self, generation: str, deadline: Deadline) -> Shard:
        """The one that a hit names, kept until the deadline; the newest if it names none.

        Raises:
            GenerationGoneError: it is not there any more.

        """
        newest = self.newest
        served = newest.generation
        found = self._newest if generation in ("", served) else self._older.get(generation)
        if found is None:
            raise GenerationGoneError(
                f"the hits are rows of generation {shortened(generation)}, shard "
                f"{newest.manifest.shard} serves {served}: retrieve again"
            )
        self._keep(found, min(deadline.left(), _LONGEST))
        return found.shard

    def _keep(self, generation: _Generation, seconds: float) -> None:
        generation.until = max(generation.until, self._clock() + seconds)
