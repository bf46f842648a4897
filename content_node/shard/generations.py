"""The generations of a shard that a node serves: the newest, and older ones that are in use.

A view never changes; writes make a new one. Views of one generation have the same passages in the
same rows, so the newest of them stands for all. A hit names a row of its generation, so a
generation is kept while questions may come back to read its hits.

Everything here is called on the event loop, so there is no lock. Threads hold the `ShardView` that
they were given. A view that is dropped here is closed when its last reader ends.
"""

from collections.abc import Callable
from dataclasses import dataclass

from winnow.content_node.shard.view import ShardView
from winnow.deadline import Clock, Deadline
from winnow.errors import GenerationGoneError
from winnow.quoting import shortened

_QUESTION = 4.0
"""Time of a question as a multiple of its retrieval's time: fronts give retrieval a share of the
time, 0.4 by default, and read in the rest.
"""
_LONGEST = 60.0
"""Seconds after which a generation is dropped, even if a deadline is later: each holds a graph in
memory, and a late reader can retrieve again.
"""


@dataclass(slots=True)
class _Generation:
    """A view, and how long its rows may be asked for."""

    view: ShardView
    until: float
    """Time by the clock."""


class RecentGenerations:
    """The newest view of a shard, and older generations in use."""

    def __init__(
        self, view: ShardView, clock: Clock, gone: Callable[[], None] = lambda: None
    ) -> None:
        """`gone` is called after a generation was dropped: its memory is free soon."""
        self._clock, self._gone = clock, gone
        self._newest = _Generation(view, clock())
        self._older: dict[str, _Generation] = {}

    @property
    def newest(self) -> ShardView:
        """The view that is served now."""
        self.let_go()
        return self._newest.view

    def let_go(self) -> None:
        """Drops generations whose time is over."""
        now = self._clock()
        kept = {name: older for name, older in self._older.items() if older.until > now}
        forgotten = len(kept) < len(self._older)
        self._older = kept
        if forgotten:
            self._gone()

    def serve(self, view: ShardView) -> None:
        """Makes `view` the newest; an older generation is kept while it may be asked for.

        A view of the same generation replaces the previous one: it has the same rows, too.
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
        """Returns the newest view for a retrieval, and keeps it as long as the question may
        last.
        """
        view = self.newest
        self._keep(self._newest, min(deadline.left() * _QUESTION, _LONGEST))
        return view

    def named(self, generation: str, deadline: Deadline) -> ShardView:
        """Returns the view of the generation that a hit names, and keeps it until the deadline.

        The newest view stands for an empty name. If it follows a log, it also stands for a missing
        generation: replicas of one log have the same passages in other rows.

        Raises:
            GenerationGoneError: the generation is not there any more.

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
