"""Retrieves from several shards of a process for one call.

First the candidates of every shard are found. Then those are ranked that are candidates of all
shards together. So the work of ranking does not grow with the number of shards.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from winnow.candidates.joint import join
from winnow.candidates.limits import candidate_limits
from winnow.content_node.admission import NodeLoad
from winnow.content_node.local_shard import Retrieval
from winnow.content_node.metrics import NodeMetrics
from winnow.deadline import Deadline
from winnow.domain.question import RetrievalDepth
from winnow.errors import DeadlineExceededError, StoppedError
from winnow.inference.stop_signal import StopSignal
from winnow.reading.pool import ReaderPool
from winnow.searcher import Retrieved
from winnow.telemetry.tracing.span import span

_MAX_RANKING_SECONDS, _RANKING_SHARE = 0.2, 0.1
"""Limits of the time reserved for ranking if a shard is late: in seconds, and as a share of the
remaining time. Ranking takes about a millisecond, but longer on a busy node.
"""
Value = TypeVar("Value")
Result = TypeVar("Result")


def with_queue_time(found: Retrieved, queue_seconds: float, idle_readers: int) -> Retrieved:
    """Returns the result of a `Retrieval` with its queue time and the idle readers."""
    timings = replace(found.timings, queue=queue_seconds)
    return replace(found, timings=timings, idle_readers=idle_readers)


def retrieve_alone(retrieval: Retrieval, depth: RetrievalDepth, stop: StopSignal) -> Retrieved:
    """Retrieves from one shard, in any thread."""
    found = retrieval(stop)
    return found.rank(candidate_limits([found], depth), stop)


class JointRetrieval:
    """Retrieves from several shards for one call, which counts as one retrieval in the load."""

    def __init__(self, pool: ReaderPool, load: NodeLoad, metrics: NodeMetrics) -> None:
        self._pool, self._load, self._metrics = pool, load, metrics

    async def run(
        self,
        shards: Sequence[Callable[[], Awaitable[Retrieval]]],
        depth: RetrievalDepth,
        deadline: Deadline,
        client: str,
    ) -> list[Retrieved | Exception]:
        """Returns the hits of each shard, without hits that other shards' hits outrank.

        `shards` are functions that prepare the retrievals; they are called one after the other. The
        result of a shard that fails or is late is its error.

        Raises:
            OverloadedError: too many retrievals are running.

        """
        with self._load.admit_retrieval():
            ready = [await _outcome_of(shard) for shard in shards]
            results = await self._retrieve(ready, depth, deadline.before_reply(), client)
            if sum(isinstance(each, Retrieved) for each in results) > 1:
                with suppress(DeadlineExceededError):  # too many hits are better than none
                    done = await self._pool.call(lambda _: join(results, depth), deadline, client)
                    return done.results[0]
        return results

    async def _retrieve(
        self,
        ready: Sequence[Retrieval | Exception],
        depth: RetrievalDepth,
        deadline: Deadline,
        client: str,
    ) -> list[Retrieved | Exception]:
        number = sum(not isinstance(each, Exception) for each in ready)
        with span("retrieve", {"winnow.shards": number}) as step:
            if number > 1:
                outcomes, queue_seconds = await self._find_and_rank(ready, depth, deadline, client)
            else:
                works = _for_each(lambda each: partial(retrieve_alone, each, depth), ready)
                outcomes, queue_seconds = await self._run_each(works, deadline, client)
            step.set("winnow.queue_ms", queue_seconds * 1e3)
        self._metrics.stage.labels("queue").observe(queue_seconds, step.exemplar)
        for found in outcomes:
            if isinstance(found, Retrieved):
                spent = found.timings.retrieve
                self._metrics.stage.labels("retrieve").observe(spent, step.exemplar)
        idle = self._pool.idle_threads
        return _for_each(lambda found: with_queue_time(found, queue_seconds, idle), outcomes)

    async def _find_and_rank(
        self,
        ready: Sequence[Retrieval | Exception],
        depth: RetrievalDepth,
        deadline: Deadline,
        client: str,
    ) -> tuple[list[Retrieved | Exception], float]:
        """Finds the candidates of all shards, then ranks them.

        The limits include those of a shard that fails while its candidates are ranked.
        """
        reserve = max(min(_MAX_RANKING_SECONDS, deadline.left() * _RANKING_SHARE), 0.0)
        found, queue_seconds = await self._run_each(ready, deadline.earlier(reserve), client)
        limits = candidate_limits(
            [each for each in found if not isinstance(each, Exception)], depth
        )
        works = _for_each(lambda each: partial(each.rank, limits), found)
        ranked, more_queue_seconds = await self._run_each(works, deadline, client)
        return ranked, queue_seconds + more_queue_seconds

    async def _run_each(
        self,
        works: Sequence[Callable[[StopSignal], Result] | Exception],
        deadline: Deadline,
        client: str,
    ) -> tuple[list[Result | Exception], float]:
        """Runs a step of each shard in threads; returns the results and the queue time in seconds.

        The error of a failed shard stays in its place. A shard that is late gets an error.
        """
        late = DeadlineExceededError("the deadline passed before the hits were found")
        results: list[Result | Exception] = [
            each if isinstance(each, Exception) else late for each in works
        ]
        items = [(n, each) for n, each in enumerate(works) if not isinstance(each, Exception)]
        done = await self._pool.call_each(_run, items, deadline, client)
        for number, result in done.results:
            results[number] = result
        return results, done.queue_seconds


def _for_each(
    convert: Callable[[Value], Result], outcomes: Sequence[Value | Exception]
) -> list[Result | Exception]:
    """Converts the results of shards; errors stay in their places."""
    return [each if isinstance(each, Exception) else convert(each) for each in outcomes]


async def _outcome_of(prepare: Callable[[], Awaitable[Retrieval]]) -> Retrieval | Exception:
    try:
        return await prepare()
    except Exception as error:  # noqa: BLE001 (the other shards still answer)
        return error


def _run(
    item: tuple[int, Callable[[StopSignal], Result]], stop: StopSignal
) -> tuple[int, Result | Exception]:
    """Runs a step of a shard in a thread; returns its error, so that the others continue."""
    number, work = item
    try:
        return number, work(stop)
    except StoppedError:
        raise
    except Exception as error:  # noqa: BLE001 (the other shards still answer)
        return number, error
