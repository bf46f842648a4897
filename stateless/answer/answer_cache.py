"""The cache of answers, which also has equal questions that arrive together read once.

Knows questions, versions of the index and time; knows neither shards nor how an answer is found.
An answer is given again only for the same tokens and options. Every shard must also say that it
serves the rows that the answer came from, and no later write may be known.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from sys import getsizeof
from typing import Any

from winnow.domain.answered import Answer, Answered, Timings
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import Question
from winnow.domain.write import Position
from winnow.errors import DeadlineExceededError, OverloadedError, WinnowError
from winnow.policy.attempts import Asker, Lack
from winnow.policy.byte_bounded_lru import UNWATCHED, ByteBoundedLru, CacheWatch
from winnow.single_flight import SingleFlight
from winnow.stateless.answer.failures import failed_shards
from winnow.stateless.cluster.index_version import IndexVersion
from winnow.telemetry.tracing.span import span

Compute = Callable[[], Coroutine[Any, Any, Answered]]
"""Finds an answer by asking the shards."""
_MOST_WAITING = 1_000
"""Most questions that wait for equal ones. Further ones are let in, or refused, by themselves."""
_REPLY_BYTES, _ANSWER_BYTES, _SHARD_BYTES = 1_000, 500, 100
"""Memory of an answer beside its texts, measured with `tracemalloc`."""
_LACK_OF = {
    ShardStatus.TIMEOUT: Lack.TIME,
    ShardStatus.ADAPTIVE: Lack.TIME,
    ShardStatus.OVERLOADED: Lack.SHARE,
}
"""What a shard's failure says another attempt might have. Nodes share fairly among clients, so
another client may be let in. All other failures are the same for every caller: each call was
retried already.
"""


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """A question as far as its answer depends on it."""

    ids: tuple[int, ...]
    """Ids of the tokens that are read: other spellings of the same tokens are the same question."""
    options: Question
    """Every option settled; without the text, the heads, and the writes that must be known."""

    @classmethod
    def of(cls, ids: tuple[int, ...], question: Question) -> "AnswerKey":
        """The key of a question with these tokens."""
        return cls(ids, replace(question, text="", heads=(), after=()))


_Key = tuple[object, AnswerKey]


class AnswerCache:
    """Keeps the complete answers used most recently."""

    def __init__(
        self, budget: int, version: Callable[[], IndexVersion], watch: CacheWatch = UNWATCHED
    ) -> None:
        """`budget`: bytes of all kept answers; `version`: the index as it is known now."""
        self._version, self._looked_up = version, watch.looked_up
        self._kept = ByteBoundedLru[_Key, Answered](budget, watch)
        self._kept_for: object = None
        """Name of the index version of all kept answers."""
        self._flights = SingleFlight[_Key, Answered](
            lack_of_answer, lack_of_error, partial(span, "join")
        )

    async def ask(
        self, key: AnswerKey, asker: Asker, compute: Compute, after: Sequence[Position] = ()
    ) -> Answered:
        """The kept answer, an answer that is being found for another caller, or a new one.

        `winnow.policy.attempts` says which caller's turn is used, and when it is found again.
        `after` are writes that the answer must know. Raises what `compute` raises.
        """
        version = self._version()
        versioned = version.name, key
        knows = version.knows(after)
        if knows and (kept := self._recall(version, versioned)) is not None:
            self._looked_up("hit")
            return _unread(kept)
        compute_new = partial(self._compute, versioned, compute)
        if not knows or version.name is None or self._flights.waiting >= _MOST_WAITING:
            return await compute_new()
        found = await self._flights.ask(versioned, compute_new, asker, partial(_knows, after=after))
        if found.own:
            return found.result
        self._looked_up("hit")
        return _unread(found.result)

    def _recall(self, version: IndexVersion, key: _Key) -> Answered | None:
        if version.name != self._kept_for:
            self._kept.clear()
            self._kept_for = version.name
        return self._kept.get(key) if version.sure else None

    async def _compute(self, key: _Key, compute: Compute) -> Answered:
        self._looked_up("miss")
        found = await compute()
        now = self._version()
        # a shard that changed meanwhile may have been read before, or after; and a replica that
        # lags may have been read instead of another
        same = now.sure and now.name == key[0] == self._kept_for and now.made(found.coverage)
        if same and found.coverage.complete and not found.dimmed:
            self._kept.put(key, _unread(found), weight(found))
        return found


def _knows(found: Answered, after: Sequence[Position]) -> bool:
    """Whether the shards that were searched had these writes."""
    had = {
        part.shard: part.sequence or 0
        for part in found.coverage.shards
        if part.status is ShardStatus.SEARCHED
    }
    return all(had.get(place.shard, place.sequence) >= place.sequence for place in after)


def _unread(found: Answered) -> Answered:
    """The same answer for a caller for whom nothing was read."""
    return replace(found, timings=Timings(), passages_read=0, cached=True)


def weight(answered: Answered) -> int:
    """About how many bytes a kept answer takes; texts weigh most."""
    answers = sum(map(_weight_of_answer, answered.answers))
    packed = answered.packed.weight if answered.packed else 0
    shards = sum(_SHARD_BYTES + getsizeof(part.reason) for part in answered.coverage.shards)
    return _REPLY_BYTES + answers + shards + packed


def _weight_of_answer(answer: Answer) -> int:
    passage = answer.reading.passage
    texts = (passage.id, passage.title, passage.text, passage.metadata)
    return _ANSWER_BYTES + sum(map(getsizeof, texts))


def lack_of_answer(found: Answered) -> tuple[Lack, tuple[int, int]]:
    """What an attempt had too little of, and its worth beside other answers to the question."""
    lack = Lack.ROOM if found.dimmed else Lack.NOTHING
    for part in found.coverage.shards:
        lack |= _LACK_OF.get(part.status, Lack.NOTHING)
    return lack, (found.coverage.searched, found.passages_granted)


def lack_of_error(error: BaseException) -> Lack:
    """What a failed attempt had too little of; NOTHING if every attempt would fail so."""
    if not isinstance(error, WinnowError):
        return Lack.NOTHING
    lack = Lack.NOTHING
    for _, status in failed_shards(error):
        lack |= _LACK_OF.get(status, Lack.NOTHING)
    if isinstance(error, OverloadedError):
        lack |= Lack.SHARE
    if isinstance(error, DeadlineExceededError):
        lack |= Lack.TIME
    return lack
