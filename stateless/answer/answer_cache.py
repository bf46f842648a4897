"""The cache of answers. Equal questions that arrive at the same time are answered once.

The cache knows questions and versions of the index. It does not know how an answer is computed. A
cached answer is returned only for the same tokens and options, and only while the version of the
index is unchanged: every shard has confirmed that it serves the same rows, and no later write is
known.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from sys import getsizeof
from typing import Any

from winnow.domain.answered import Answer, Answered, Timings
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import Question
from winnow.domain.write import Position
from winnow.errors import DeadlineExceededError, OverloadedError, WinnowError
from winnow.policy.attempts import Lack, SingleFlightCaller
from winnow.policy.byte_bounded_lru import NO_OBSERVER, ByteBoundedLru, CacheObserver
from winnow.single_flight import SingleFlight
from winnow.stateless.answer.failures import failed_shards
from winnow.stateless.cluster.index_version import IndexVersion
from winnow.telemetry.tracing.span import span

Compute = Callable[[], Coroutine[Any, Any, Answered]]
"""Computes an answer by searching the shards."""
_MAX_WAITING = 1_000
"""Maximum number of questions that wait for the answer to an equal question. Any further question
is admitted or refused by itself.
"""
_REPLY_BYTES, _ANSWER_BYTES, _SHARD_BYTES = 1_000, 500, 100
"""Bytes of a reply, of each answer and of each shard, without texts; measured with `tracemalloc`.
"""
_LACK_OF = {
    ShardStatus.TIMEOUT: Lack.TIME,
    ShardStatus.ADAPTIVE: Lack.TIME,
    ShardStatus.OVERLOADED: Lack.SHARE,
}
"""What an attempt lacked, by the status of a failed shard.

Another attempt may have more time, or another client's share. A shard with any other status would
fail in every attempt, because its call was already retried.
"""


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """The parts of a question that its answer depends on."""

    ids: tuple[int, ...]
    """Token ids. Texts with the same tokens are the same question."""
    options: Question
    """The question's options, without its text, heads, required writes and minimum confidence.

    Callers judge a cached answer by their own minimum confidence.
    """

    @classmethod
    def of(cls, ids: tuple[int, ...], question: Question) -> "AnswerKey":
        """Returns the key of a question with these token ids."""
        return cls(ids, replace(question, text="", heads=(), after=(), min_confidence=None))


_Key = tuple[object, AnswerKey]


class AnswerCache:
    """Caches complete answers, and evicts the least recently used."""

    def __init__(
        self, budget: int, version: Callable[[], IndexVersion], metrics: CacheObserver = NO_OBSERVER
    ) -> None:
        """`budget`: maximum bytes of all cached answers. `version` returns the current index
        version.
        """
        self._version, self._count_lookup = version, metrics.count_lookup
        self._answers = ByteBoundedLru[_Key, Answered](budget, metrics)
        self._version_name: object = None
        """Name of the index version of all cached answers."""
        self._flights = SingleFlight[_Key, Answered](
            lack_of_answer, lack_of_error, partial(span, "join")
        )

    async def get_or_compute(
        self,
        key: AnswerKey,
        flight_caller: SingleFlightCaller,
        compute: Compute,
        after: Sequence[Position] = (),
        required: Callable[[], Mapping[int, int]] = dict,
    ) -> Answered:
        """Returns a cached answer, an answer that is computed for another caller, or a new answer.

        `winnow.policy.attempts` decides with which caller's share and deadline an attempt is made.

        Args:
            key: identifies equal questions.
            flight_caller: the caller of this question.
            compute: computes a new answer.
            after: writes that the answer must include.
            required: returns the number of the write of each shard that a new answer would include.
                The answer of an earlier caller may lack a write that was acknowledged since, if a
                lagging replica was searched.

        Raises the errors of `compute`.

        """
        version = self._version()
        versioned = version.name, key
        includes_writes = version.includes(after)
        if includes_writes and (cached := self._get(version, versioned)) is not None:
            self._count_lookup("hit")
            return _as_cached(cached)
        compute_new = partial(self._compute, versioned, compute)
        if not includes_writes or version.name is None or self._flights.waiting >= _MAX_WAITING:
            return await compute_new()
        acknowledged = (Position(shard, sequence) for shard, sequence in required().items())
        usable = partial(_includes_writes, after=[*after, *acknowledged])
        shared = await self._flights.ask(versioned, compute_new, flight_caller, usable)
        if shared.own:
            return shared.result
        self._count_lookup("hit")
        return _as_cached(shared.result)

    def _get(self, version: IndexVersion, key: _Key) -> Answered | None:
        if version.name != self._version_name:
            self._answers.clear()
            self._version_name = version.name
        return self._answers.get(key) if version.is_confirmed else None

    async def _compute(self, key: _Key, compute: Compute) -> Answered:
        self._count_lookup("miss")
        answered = await compute()
        now = self._version()
        # if a shard changed meanwhile, it may have been searched before or after the change; and a
        # lagging replica may have been searched instead of another
        unchanged = now.is_confirmed and now.name == key[0] == self._version_name
        as_usual = not answered.dimmed and not answered.lost_late_interaction
        complete = answered.coverage.complete and as_usual
        if unchanged and now.matches(answered.coverage) and complete:
            self._answers.put(key, _as_cached(answered), memory_bytes(answered))
        return answered


def _includes_writes(answered: Answered, after: Sequence[Position]) -> bool:
    """Whether each searched shard had these writes."""
    sequences = {
        part.shard: part.sequence or 0
        for part in answered.coverage.shards
        if part.status is ShardStatus.SEARCHED
    }
    return all(sequences.get(write.shard, write.sequence) >= write.sequence for write in after)


def _as_cached(answered: Answered) -> Answered:
    """Returns the same answer for another caller, without timings and without passages read."""
    return replace(answered, timings=Timings(), passages_read=0, cached=True)


def memory_bytes(answered: Answered) -> int:
    """Approximate size of a cached answer in bytes. Texts take most of it."""
    answers = sum(map(_answer_bytes, answered.answers))
    packed = answered.packed.weight if answered.packed else 0
    shards = sum(_SHARD_BYTES + getsizeof(part.reason) for part in answered.coverage.shards)
    return _REPLY_BYTES + answers + shards + packed


def _answer_bytes(answer: Answer) -> int:
    passage = answer.reading.passage
    texts = (passage.id, passage.title, passage.text, passage.metadata)
    return _ANSWER_BYTES + sum(map(getsizeof, texts))


def lack_of_answer(answered: Answered) -> tuple[Lack, tuple[int, int]]:
    """Returns what an attempt lacked, and the rank of its answer (higher is better)."""
    lack = Lack.ROOM if answered.dimmed else Lack.NOTHING
    for part in answered.coverage.shards:
        lack |= _LACK_OF.get(part.status, Lack.NOTHING)
    return lack, (answered.coverage.searched, answered.passages_granted)


def lack_of_error(error: BaseException) -> Lack:
    """Returns what a failed attempt lacked; NOTHING if another attempt would fail, too."""
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
