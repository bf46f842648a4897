"""Retrieves from several shards of a process for one call."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from winnow.candidates.joint import join
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


def with_queue_time(found: Retrieved, queue_seconds: float, idle_readers: int) -> Retrieved:
    """Returns the result of a `Retrieval` with its queue time and the idle readers."""
    timings = replace(found.timings, queue=queue_seconds)
    return replace(found, timings=timings, idle_readers=idle_readers)


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
            results = await self._run_ready(ready, deadline.before_reply(), client)
            if sum(isinstance(each, Retrieved) for each in results) > 1:
                with suppress(DeadlineExceededError):  # too many hits are better than none
                    done = await self._pool.call(lambda _: join(results, depth), deadline, client)
                    return done.results[0]
        return results

    async def _run_ready(
        self, ready: Sequence[Retrieval | Exception], deadline: Deadline, client: str
    ) -> list[Retrieved | Exception]:
        works = {n: each for n, each in enumerate(ready) if not isinstance(each, Exception)}
        late = DeadlineExceededError("the deadline passed before the hits were found")
        results: list[Retrieved | Exception] = [
            each if isinstance(each, Exception) else late for each in ready
        ]
        with span("retrieve", {"winnow.shards": len(works)}) as step:
            done = await self._pool.call_each(_run_retrieval, list(works.items()), deadline, client)
            step.set("winnow.queue_ms", done.queue_seconds * 1e3)
        self._metrics.stage.labels("queue").observe(done.queue_seconds, step.exemplar)
        retrieve_seconds = self._metrics.stage.labels("retrieve")
        for number, found in done.results:
            if isinstance(found, Retrieved):
                retrieve_seconds.observe(found.timings.retrieve, step.exemplar)
                results[number] = with_queue_time(
                    found, done.queue_seconds, self._pool.idle_threads
                )
            else:
                results[number] = found
        return results


async def _outcome_of(prepare: Callable[[], Awaitable[Retrieval]]) -> Retrieval | Exception:
    try:
        return await prepare()
    except Exception as error:  # noqa: BLE001 (the other shards still answer)
        return error


def _run_retrieval(
    item: tuple[int, Retrieval], stop: StopSignal
) -> tuple[int, Retrieved | Exception]:
    """Runs a retrieval in a thread; returns its error, so that the others continue."""
    number, retrieval = item
    try:
        return number, retrieval(stop)
    except StoppedError:
        raise
    except Exception as error:  # noqa: BLE001 (the other shards still answer)
        return number, error
