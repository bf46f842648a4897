"""The process that `bench crashes` kills: `python -m bench.crashes.victim SHARD` serves a shard.

The process opens the shard as a content node does, without models and gRPC. It reads commands as
JSON lines from standard input, runs them concurrently, and prints a JSON line as the reply to each.
"""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from bench.crashes.expected import ENCODER, NEAREST_COUNT
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.child_process import MergeChild
from winnow.content_node.merging.merger import Merger
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.merging.policy import MergePolicy, MergeReason
from winnow.content_node.merging.tidying import remove_obsolete
from winnow.content_node.metrics import MergeMetrics, WriteMetrics
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.shard.retrieving import retrieve
from winnow.deadline import Deadline
from winnow.domain.question import RetrievalDepth
from winnow.errors import WinnowError
from winnow.parent import die_with_parent

_LIMITS = WriteLimits(
    shard=0,
    shards=1,
    dimension=ENCODER.dimension,
    vocabulary=ENCODER.vocabulary,
    max_unmerged=100_000,
)
_ALL_PASSAGES = 1_000
_WRITE_TIMEOUT = 60.0


class Victim:
    """A shard and its merger. Every public coroutine except `reply` is a command."""

    def __init__(self, shard: Path) -> None:
        registry = CollectorRegistry()
        self._shard: LiveShard = open_live(
            shard,
            lambda trimmed: open_newest(shard, trimmed, _open_base, feeding=True),
            lambda _: _LIMITS,
            WriteMetrics(registry),
            feeding=True,
        )
        self.merger: Merger[StoredSegment] = Merger(
            shard=self._shard,
            policy=MergePolicy(min_writes=_ALL_PASSAGES),
            new_merge=lambda base, upto: MergeChild(base=base, shard=shard, upto=upto),
            open_base=_open_base,
            remove_obsolete=lambda served: remove_obsolete(shard, served),
            metrics=MergeMetrics(registry),
            one_at_a_time=asyncio.Lock(),
        )

    async def reply(self, command: dict[str, Any]) -> None:
        """Runs a command, and prints the reply."""
        try:
            (kind,) = command.keys() - {"number"}
            value = await getattr(self, kind)(command[kind])
        except WinnowError as error:
            value = {"error": str(error)}
        _print({"number": command["number"], "value": value})

    async def writes(self, drafts: list[Any]) -> Any:
        """Applies writes; returns the outcome and the sequence number of each."""
        written = await self._shard.write(
            [ENCODER.write(*draft) for draft in drafts], Deadline.after(_WRITE_TIMEOUT)
        )
        return [(each.outcome.value, each.sequence) for each in written]

    async def merge(self, _: Any) -> Any:
        """Merges the writes so far; returns the sequence number of the last merged write."""
        await self.merger.merge(MergeReason.WRITES)
        return self._shard.merged

    async def dump(self, _: Any) -> Any:
        """Returns all texts by id, and the sequence number of the last write."""
        view = self._shard.view
        depth = RetrievalDepth(passages=_ALL_PASSAGES)
        found = retrieve(view, ENCODER.question("all"), depth, 0.0)
        return {
            "texts": {hit.passage_id: view.load(hit.row).passage.text for hit in found.hits},
            "sequence": view.sequence,
        }

    async def search(self, text: str) -> Any:
        """Returns the texts nearest to `text`, and the ids of passages with any word of `text`."""
        question = ENCODER.question(text)
        view = self._shard.view
        nearest = retrieve(view, question, RetrievalDepth(passages=NEAREST_COUNT), 0.0)
        words = retrieve(
            view,
            question,
            RetrievalDepth(passages=_ALL_PASSAGES, candidates=0, by_words=_ALL_PASSAGES),
            1.0,
        )
        return {
            "near": [view.load(hit.row).passage.text for hit in nearest.hits],
            "words": sorted(hit.passage_id for hit in words.hits if hit.words > 0),
        }


def _open_base(directory: Path) -> StoredSegment:
    # exact_up_to=0 makes even a small shard search its graph, which this benchmark tests
    return open_shard(directory, ef=_ALL_PASSAGES, exact_up_to=0)


async def _serve(shard: Path) -> None:
    victim = await asyncio.to_thread(Victim, shard)
    loop = asyncio.get_running_loop()
    merging = asyncio.create_task(victim.merger.run())
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        os._exit(0)

    loop.run_in_executor(None, read)
    _print({"ready": True})
    tasks = {merging}
    while True:
        tasks.add(asyncio.create_task(victim.reply(json.loads(await lines.get()))))


def _print(reply: dict[str, Any]) -> None:
    print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    die_with_parent()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    asyncio.run(_serve(Path(sys.argv[1])))
