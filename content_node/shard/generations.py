"""The generations of a shard that a node serves: the newest, and older ones that are asked for.

A view never changes; writes come as a new one. Views of one generation have the same passages in
the same rows, so the newest of them stands for all. A hit names a row of the generation that it was
found in, so that one is kept while its question may come back to read.

Everything here is called on the event loop, where no call interrupts another: there is no lock for
a question to wait at. Threads hold the `ShardView` that they were given. A view that is dropped
here is closed when the last of its readers ends.
"""

from collections.abc import Callable
from dataclasses import dataclass

from winnow.content_node.shard.view import ShardView
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
    """A view, and how long its rows may be asked for."""

    view: ShardView
    until: float
    """By the clock."""


class RecentGenerations:
    """One shard as it was lately."""

    def __init__(
        self, view: ShardView, clock: Clock, gone: Callable[[], None] = lambda: None
    ) -> None:
        """`gone` is called after a generation was forgotten: its memory is free soon."""
        self._clock, self._gone = clock, gone
        self._newest = _Generation(view, clock())
        self._older: dict[str, _Generation] = {}

    @property
    def newest(self) -> ShardView:
        """What is served now."""
        self.let_go()
        return self._newest.view

    def let_go(self) -> None:
        """Forgets what nobody can come back for."""
        now = self._clock()
        kept = {name: older for name, older in self._older.items() if older.until > now}
        forgotten = len(kept) < len(self._older)
        self._older = kept
        if forgotten:
            self._gone()

    def serve(self, view: ShardView) -> None:
        """From now on `view` is the newest; an older generation is kept while it may be asked for.

        One of the same generation takes the place of what was served: it has these rows, too.
        """
        before = self._newest
        if view.generation == before.view.generation:
            before.view = view
            return
        self._older[before.view.generation] = before
        same = self._older.pop(view.generation, None)
        self._newest = _Generation(view, same.until if same else self._clock())
        self.let_go()

    def lease(self, deadline: Deadline) -> ShardView:
        """The newest, for a retrieval; kept as long as its question may last."""
        view = self.newest
        self._keep(self._newest, min(deadline.left() * _QUESTION, _LONGEST))
        return view

    def named(self, generation: str, deadline: Deadline) -> ShardView:
        """The one that a hit names, kept until the deadline; the newest if it names none.

        The newest, too, if it follows a log and the named one is not there: replicas of one log
        have the same passages in other rows.

        Raises:
            GenerationGoneError: it is not there any more.

        """
        newest = self.newest
        served = newest.generation
        found = self._newest if generation in ("", served) else self._older.get(generation)
        if found is None and newest.log_id:
            found = self._newest
        if found is None:
            raise GenerationGoneError(
                f"the hits are rows of generation {shortened(generation)}, shard "
                f"{newest.manifest.shard} serves {served}: retrieve again"
            )
        self._keep(found, min(deadline.left(), _LONGEST))
        return found.view

    def _keep(self, generation: _Generation, seconds: float) -> None:
        generation.until = max(generation.until, self._clock() + seconds)
