"""Questions that were asked before, or are asked several times at once: read once.

Knows questions, editions of the index and time; knows neither shards nor how an answer is found.
An answer is used again only for the same tokens and options, and only while every shard says that
it serves the rows that it came from, and no write is known of that it did not know of.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stateless.answer.weight import weight
from stateless.cluster.edition import Edition
from winnow.deadline import Deadline
from winnow.domain.answered import Answered, Timings
from winnow.domain.coverage import ShardStatus
from winnow.domain.position import Position
from winnow.domain.question import Question
from winnow.policy.kept import UNWATCHED, Kept, Watch
from winnow.single_flight import Flight, SingleFlight
from winnow.telemetry.tracing.span import span

Find = Callable[[], Coroutine[Any, Any, Answered]]
"""Finds an answer by asking the shards."""
_MOST_WAITING = 1_000
"""Askers that wait for the answers of others; more are let in, or refused, by themselves."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as far as its answer depends on it."""

    ids: tuple[int, ...]
    """Of the tokens that are read: other spellings of the same tokens are the same question."""
    options: Question
    """Every option settled; without its text and its heads, and the writes that it must know of."""

    @classmethod
    def of(cls, ids: tuple[int, ...], question: Question) -> "Asked":
        """A question with these tokens."""
        return cls(ids, replace(question, text="", heads=(), after=()))


_Key = tuple[object, Asked]


class RememberedAnswers:
    """Keeps the complete answers used most recently, and has no question read twice at a time."""

    def __init__(
        self, budget: int, edition: Callable[[], Edition], watch: Watch = UNWATCHED
    ) -> None:
        """`budget`: bytes of all that is kept; `edition`: of the index, as it is known now."""
        self._edition, self._looked_up = edition, watch.looked_up
        self._kept = Kept[_Key, Answered](budget, watch)
        self._of: object = None
        """The edition of all that is kept."""
        self._flights = SingleFlight[_Key, Answered]()
        self._joined = 0

    async def ask(
        self, asked: Asked, deadline: Deadline, find: Find, after: Sequence[Position] = ()
    ) -> Answered:
        """The answer that is kept, or being found for somebody else, or a new one.

        A new one is found in the turn of whoever asks first. `after` are writes that the answer
        must know of. Raises what `find` raises.
        """
        edition = self._edition()
        key = edition.name, asked
        if not edition.knows(after):
            self._looked_up("miss")
            return await self._find(key, find)
        if (kept := self._recall(edition, key)) is not None:
            self._looked_up("hit")
            return _again(kept)
        flight = self._flights.get(key)
        if flight is not None and self._worth_joining(flight, deadline):
            with span("join"):  # whoever asked first has the parts of this in its trace
                found = await self._join(flight, deadline, after)
            if found is not None:
                self._looked_up("hit")
                return _again(found)
            flight = self._flights.get(key)
        self._looked_up("miss")
        if edition.name is None or flight is not None:
            return await self._find(key, find)
        return await self._flights.begin(key, self._find(key, find), deadline).result()

    def _recall(self, edition: Edition, key: _Key) -> Answered | None:
        if edition.name != self._of:
            self._kept.clear()
            self._of = edition.name
        return self._kept.get(key) if edition.sure else None

    def _worth_joining(self, flight: Flight[Answered], deadline: Deadline) -> bool:
        """Whoever has less time than the first asker might wait for too long.

        Shards are given up a little before a deadline, so that those set at once harm nobody.
        """
        return flight.in_time_for(deadline) and self._joined < _MOST_WAITING

    async def _join(
        self, flight: Flight[Answered], deadline: Deadline, after: Sequence[Position]
    ) -> Answered | None:
        """What somebody else is given; None if it is less than all and there is time for more, or
        if it does not know of the writes `after`.
        """
        self._joined += 1
        try:
            found = await flight.result()
        except Exception:
            if _can_do_better(flight, deadline):
                return None
            raise
        finally:
            self._joined -= 1
        whole = _is_whole(found) or not _can_do_better(flight, deadline)
        return found if whole and _knows(found, after) else None

    async def _find(self, key: _Key, find: Find) -> Answered:
        found = await find()
        now = self._edition()
        # a shard that changed meanwhile may have been read before, or after; and a replica that
        # lags may have been read instead of another
        same = now.sure and now.name == key[0] == self._of and now.made(found.coverage)
        if same and _is_whole(found):
            self._kept.put(key, _again(found), weight(found))
        return found


def _can_do_better(flight: Flight[Answered], deadline: Deadline) -> bool:
    """Whether as much time is left as the other one took."""
    return deadline.left() > flight.age()


def _is_whole(found: Answered) -> bool:
    """Whether more time, or less to do for others, would not have given a better answer."""
    return found.coverage.complete and not found.dimmed


def _knows(found: Answered, after: Sequence[Position]) -> bool:
    """Whether the shards that were searched had these writes."""
    had = {
        part.shard: part.sequence or 0
        for part in found.coverage.shards
        if part.status is ShardStatus.SEARCHED
    }
    return all(had.get(place.shard, place.sequence) >= place.sequence for place in after)


def _again(found: Answered) -> Answered:
    """The same answer for somebody for whom nothing was read."""
    return replace(found, timings=Timings(), passages_read=0, cached=True)
