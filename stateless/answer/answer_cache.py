"""Questions that were asked before, or are asked several times at once: read once.

Knows questions, editions of the index and time; knows neither shards nor how an answer is found.
An answer is used again only for the same tokens and options, and only while every shard says that
it serves the rows that it came from, and no write is known of that it did not know of.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from winnow.domain.answered import Answered, Timings
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import Question
from winnow.domain.write import Position
from winnow.policy.attempts import Asker
from winnow.policy.kept import UNWATCHED, Kept, Watch
from winnow.single_flight import SingleFlight
from winnow.stateless.answer.lacking import lack_of_answer, lack_of_error
from winnow.stateless.answer.weight import weight
from winnow.stateless.cluster.index_version import IndexVersion
from winnow.telemetry.tracing.span import span

Find = Callable[[], Coroutine[Any, Any, Answered]]
"""Finds an answer by asking the shards."""
_MOST_WAITING = 1_000
"""Askers in flights; more are let in, or refused, by themselves."""


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """A question as far as its answer depends on it."""

    ids: tuple[int, ...]
    """Of the tokens that are read: other spellings of the same tokens are the same question."""
    options: Question
    """Every option settled; without its text and its heads, and the writes that it must know of."""

    @classmethod
    def of(cls, ids: tuple[int, ...], question: Question) -> "AnswerKey":
        """A question with these tokens."""
        return cls(ids, replace(question, text="", heads=(), after=()))


_Key = tuple[object, AnswerKey]


class AnswerCache:
    """Keeps the complete answers used most recently, and has no question read twice at a time."""

    def __init__(
        self, budget: int, edition: Callable[[], IndexVersion], watch: Watch = UNWATCHED
    ) -> None:
        """`budget`: bytes of all that is kept; `edition`: of the index, as it is known now."""
        self._edition, self._looked_up = edition, watch.looked_up
        self._kept = Kept[_Key, Answered](budget, watch)
        self._of: object = None
        """The edition of all that is kept."""
        self._flights = SingleFlight[_Key, Answered](
            lack_of_answer, lack_of_error, partial(span, "join")
        )

    async def ask(
        self, asked: AnswerKey, asker: Asker, find: Find, after: Sequence[Position] = ()
    ) -> Answered:
        """The answer that is kept, or one that is found for somebody else meanwhile, or a new one.

        `winnow.policy.attempts` says whose turn it is found in, and which parts of an answer are
        asked for again. `after` are writes that the answer must know of. Raises what `find` raises.
        """
        edition = self._edition()
        key = edition.name, asked
        knows = edition.knows(after)
        if knows and (kept := self._recall(edition, key)) is not None:
            self._looked_up("hit")
            return _again(kept)
        find_new = partial(self._find, key, find)
        if not knows or edition.name is None or self._flights.waiting >= _MOST_WAITING:
            return await find_new()
        found = await self._flights.ask(key, find_new, asker, partial(_knows, after=after))
        if found.own:
            return found.result
        self._looked_up("hit")
        return _again(found.result)

    def _recall(self, edition: IndexVersion, key: _Key) -> Answered | None:
        if edition.name != self._of:
            self._kept.clear()
            self._of = edition.name
        return self._kept.get(key) if edition.sure else None

    async def _find(self, key: _Key, find: Find) -> Answered:
        self._looked_up("miss")
        found = await find()
        now = self._edition()
        # a shard that changed meanwhile may have been read before, or after; and a replica that
        # lags may have been read instead of another
        same = now.sure and now.name == key[0] == self._of and now.made(found.coverage)
        if same and _is_whole(found):
            self._kept.put(key, _again(found), weight(found))
        return found


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
