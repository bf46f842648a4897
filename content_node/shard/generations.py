"""The generations of a shard that a node serves: the newest, and older ones that are in use.

A view never changes; writes make a new one. Views of one generation have the same passages in the
same rows, so only the newest of them is kept. A hit is a row of a generation, so a generation is
kept until the questions that retrieved its hits have ended.

All methods are called on the event loop, so there is no lock. A dropped view is closed when its
last reading thread ends.
"""

from collections.abc import Callable
from dataclasses import dataclass

from winnow.content_node.shard.view import ShardView
from winnow.deadline import Clock, Deadline
from winnow.errors import GenerationGoneError
from winnow.quoting import shortened

_QUESTION_PER_RETRIEVAL = 4.0
"""Time of a question, as a multiple of its retrieval's time. Fronts give retrieval a share of the
time, 0.4 by default.
"""
_MAX_LEASE = 60.0
"""Maximum seconds that a generation is kept after a call: each has a graph in memory, and a late
reader can retrieve again.
"""


@dataclass(slots=True)
class _Generation:
    """The newest view of a generation, and the time when its last lease ends."""

    view: ShardView
    leased_until: float


class RecentGenerations:
    """The newest view of a shard, and older generations in use."""

    def __init__(
        self, view: ShardView, clock: Clock, on_drop: Callable[[], None] = lambda: None
    ) -> None:
        """`on_drop` is called after a generation was dropped: its memory is free soon."""
        self._clock, self._on_drop = clock, on_drop
        self._newest = _Generation(view, clock())
        self._older: dict[str, _Generation] = {}

    @property
    def newest(self) -> ShardView:
        """The newest view. Drops expired generations."""
        self.drop_expired()
        return self._newest.view

    def drop_expired(self) -> None:
        """Drops older generations whose last lease has ended."""
        now = self._clock()
        leased = {name: older for name, older in self._older.items() if older.leased_until > now}
        dropped = len(leased) < len(self._older)
        self._older = leased
        if dropped:
            self._on_drop()

    def set_newest(self, view: ShardView) -> None:
        """Makes `view` the newest, and keeps the previous generation while it is leased.

        A view of the same generation replaces the previous one, which has the same rows.
        """
        before = self._newest
        if view.generation == before.view.generation:
            before.view = view
            return
        self._older[before.view.generation] = before
        same = self._older.pop(view.generation, None)
        self._newest = _Generation(view, same.leased_until if same else self._clock())
        self.drop_expired()

    def lease_newest(self, deadline: Deadline) -> ShardView:
        """Returns the newest view for a retrieval; keeps its generation for the reads that follow.

        `deadline` is that of the retrieval. The whole question has more time.
        """
        view = self.newest
        self._extend_lifetime(self._newest, deadline.left() * _QUESTION_PER_RETRIEVAL)
        return view

    def lease(self, generation: str, deadline: Deadline) -> ShardView:
        """Returns the view of a generation, and keeps the generation until the deadline.

        Args:
            generation: the generation in which a hit was found; empty for the newest. If it is
                missing and the shard follows a log, the newest is returned: replicas of one log
                have the same passages, although in other rows.
            deadline: when the reading of the hits ends.

        Raises:
            GenerationGoneError: the generation was dropped or never served, and the shard follows
                no log.

        """
        newest = self.newest
        served = newest.generation
        found = self._newest if generation in ("", served) else self._older.get(generation)
        if found is None and newest.log_id:
            found = self._newest
        if found is None:
            raise GenerationGoneError(
                f"the hits are rows of generation {shortened(generation)}, but shard "
                f"{newest.manifest.shard} serves {served}: retrieve again"
            )
        self._extend_lifetime(found, deadline.left())
        return found.view

    def _extend_lifetime(self, generation: _Generation, seconds: float) -> None:
        until = self._clock() + min(seconds, _MAX_LEASE)
        generation.leased_until = max(generation.leased_until, until)
