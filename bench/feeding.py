"""What feeding through a front costs: its rate, and what questions notice of it.

    python -m bench.feeding --index INDEX --passages FILE --questions FILE [--rounds 5]

Serves a copy of INDEX as `winnow up --feed-listen` does, and measures in one interleaved run:

- the rate of the encoder alone, in threads of this process, against that of feeding the same
  passages until they are durable (wanted: a share of at least 0.9);
- the latency of questions, asked one after the other, while passages are fed at half of that rate
  against while none are (wanted: p99 at most 1.3 times as long, by its 95 % interval);
- how many of them were answered from all shards, from some, refused or late (wanted: all complete).
  `--merge-after` has nodes merge often meanwhile.
"""

import argparse
import asyncio
import contextlib
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from statistics import median

from bench.common.arguments import parser
from bench.common.arguments import questions as read
from bench.common.figures import Figure, quantile, show
from bench.common.quantiles import quantile as estimated
from bench.common.quantiles import ratio, within
from winnow.bundle import default_bundle, load_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client import AsyncClient, PassageFields
from winnow.client.messages import AnswerClient
from winnow.domain.passage import Passage
from winnow.errors import DeadlineExceededError, OverloadedError
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.runtime import InferenceOptions
from winnow.passages.encoding import PassageEncoder
from winnow.passages.rows import Row, read_rows
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2

LEAST_SHARE, MOST_SLOWER = 0.9, 1.3
"""What is wanted of the rate of feeding, and of the p99 of questions beside it."""
AT_ONCE = 4
"""Requests that feed at the same time."""
REQUEST, SMALL = 50, 10
"""Passages of a request, at full rate and at half of it."""


class Source:
    """Passages of a file, again and again, each time under new ids: nothing is unchanged."""

    def __init__(self, path: Path) -> None:
        rows = islice((row for row in read_rows(path) if isinstance(row, Row)), 20_000)
        self._passages = [row.passage for row in rows]
        self._numbers = count()

    def take(self, number: int) -> list[Passage]:
        return [self._one(next(self._numbers)) for _ in range(number)]

    def _one(self, number: int) -> Passage:
        passage = self._passages[number % len(self._passages)]
        return Passage(f"fed-{number}", passage.title, passage.text)


class Raw:
    """The encoder alone, on passages that are tokenised."""

    def __init__(self, threads: int) -> None:
        bundle = load_bundle(default_bundle())
        self._tokenizer, self._threads = Tokenizer(bundle.tokenizer), threads
        options = InferenceOptions(runs=threads)
        model = open_passage_encoder(bundle, self._tokenizer.special, options)
        self._encoder = PassageEncoder(model, bundle.manifest.encoder)

    def rate(self, passages: Sequence[Passage]) -> float:
        """Passages a second."""
        work = [
            (self._tokenizer.tokenise(each.title).ids, self._tokenizer.tokenise(each.text).ids)
            for each in passages
        ]
        started = time.perf_counter()
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(lambda pair: self._encoder.encode(*pair), work))
        return len(work) / (time.perf_counter() - started)


def fields(passages: Sequence[Passage]) -> list[PassageFields]:
    return [{"id": each.id, "title": each.title, "text": each.text} for each in passages]


def parts(passages: Sequence[Passage], size: int) -> Iterator[Sequence[Passage]]:
    return (passages[start : start + size] for start in range(0, len(passages), size))


async def feed_rate(client: AsyncClient, passages: Sequence[Passage]) -> float:
    """Passages a second, from the first request until the last one is durable."""
    waiting = parts(passages, REQUEST)
    started = time.perf_counter()

    async def work() -> None:
        for part in waiting:
            await client.put(fields(part))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    return len(passages) / (time.perf_counter() - started)


async def put(client: AsyncClient, passages: Sequence[Passage]) -> None:
    """Stores passages; a front that is full is asked again when it says, a late one at once."""
    while True:
        try:
            await client.put(fields(passages))
        except OverloadedError as error:
            await asyncio.sleep(error.retry_after)
        except DeadlineExceededError:
            continue
        else:
            return


async def feed_at(client: AsyncClient, source: Source, rate: float, until: asyncio.Event) -> int:
    """Feeds small requests at a rate, until an event; returns how many passages that were.

    Where questions leave too little of the machine for that rate, the front refuses some of them
    for a while.
    """
    fed, started = 0, time.perf_counter()
    async with asyncio.TaskGroup() as group:
        while not until.is_set():
            group.create_task(put(client, source.take(SMALL)))
            fed += SMALL
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(started + fed / rate - time.perf_counter(), 0)):
                    await until.wait()
    return fed


@dataclass(frozen=True, slots=True)
class QuestionSeries:
    """Questions asked in turn, in seconds each."""

    client: AnswerClient
    questions: list[str]
    timeout: float
    outcomes: Counter[str] = field(default_factory=Counter)

    async def latencies(self, number: int, start: int) -> list[float]:
        """Seconds of each question, and counts what became of it; a late one took the timeout."""
        found = []
        for place in range(start, start + number):
            question = self.questions[place % len(self.questions)]
            request = answer_pb2.AnswerRequest(question=question, max_loss=0, fresh=True)
            began = time.perf_counter()
            self.outcomes[await self._outcome(request)] += 1
            found.append(time.perf_counter() - began)
        return found

    async def _outcome(self, request: answer_pb2.AnswerRequest) -> str:
        try:
            reply = await self.client.ask(request, timeout=self.timeout)
        except OverloadedError:
            return "refused"
        except DeadlineExceededError:
            return "late"
        return "complete" if reply.coverage.complete else "incomplete"


async def measure(cluster: LocalCluster, options: argparse.Namespace) -> list[Figure]:
    source, raw = Source(options.passages), Raw(options.threads)
    questions = read(options.questions)
    raws, feds, beside, calm, busy = [], [], [], [], []
    async with AsyncClient(cluster.feed) as feeding, AnswerClient(cluster.address) as client:
        unfed = QuestionSeries(client, questions, options.timeout)
        fed_beside = QuestionSeries(client, questions, options.timeout)
        await feed_rate(feeding, source.take(REQUEST))
        await QuestionSeries(client, questions, options.timeout).latencies(20, 0)
        for number in range(options.rounds):
            passages = source.take(options.block)
            raws.append(await asyncio.to_thread(raw.rate, passages))
            feds.append(await feed_rate(feeding, passages))
            start = number * options.questions_each
            calm += await unfed.latencies(options.questions_each, start)
            enough = asyncio.Event()
            background = asyncio.create_task(feed_at(feeding, source, median(feds) / 2, enough))
            began = time.perf_counter()
            busy += await fed_beside.latencies(options.questions_each, start)
            enough.set()
            fed = await background
            # the last of them are stored when nobody asks any more
            beside.append(fed / (time.perf_counter() - began))
            print(
                f"round {number + 1}: encoder {raws[-1]:.1f}/s, feeding {feds[-1]:.1f}/s; "
                f"{fed} fed while {options.questions_each} questions were asked",
                file=sys.stderr,
                flush=True,
            )
    return [
        *rates(raws, feds, beside),
        *latencies(calm, busy),
        *outcomes("without feeding", unfed.outcomes),
        *outcomes("beside feeding", fed_beside.outcomes),
    ]


def rates(raws: list[float], feds: list[float], beside: list[float]) -> list[Figure]:
    """Passages a second of the rounds, and the share of the encoder's rate that feeding reaches."""
    shares = [fed / raw for fed, raw in zip(feds, raws, strict=True)]
    share, spread = median(shares), (min(shares), max(shares))
    wanted = f"at least {LEAST_SHARE:g}"
    return [
        Figure("feeding", "the encoder alone, passages", median(raws), "/s"),
        Figure("feeding", "feeding, passages", median(feds), "/s"),
        Figure("feeding", "feeding, of the encoder", share, "times", spread, wanted,
               share >= LEAST_SHARE),
        Figure("feeding", "fed beside questions, passages", median(beside), "/s"),
    ]  # fmt: skip


def latencies(calm: list[float], busy: list[float]) -> list[Figure]:
    """Quantiles of the questions without feeding and beside it."""
    ways = (("without feeding", calm), ("beside feeding", busy))
    grown = ratio(estimated(busy, 0.99), estimated(calm, 0.99))
    return [
        *(quantile("questions", *way, share) for way in ways for share in (0.5, 0.99)),
        Figure(
            "questions",
            "p99 beside feeding, of without (95 %)",
            grown.value,
            "times",
            (grown.low, grown.high),
            f"at most {MOST_SLOWER:g}",
            within(grown, MOST_SLOWER),
        ),
    ]


def outcomes(name: str, counted: Counter[str]) -> list[Figure]:
    """What became of the questions; all are wanted to be complete."""
    return [
        Figure("questions", f"{name}: {what}", count, "", wanted="0" if what != "complete" else "",
               holds=None if what == "complete" else not count)
        for what, count in sorted(counted.items())
    ]  # fmt: skip


def main() -> int:
    """Measures; the exit code."""
    arguments = parser("feeding", __doc__, asks=True)
    arguments.add_argument("--passages", type=Path, required=True, help="as for building")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--block", type=int, default=1_000, help="passages fed in a round")
    arguments.add_argument("--questions-each", type=int, default=200, help="each way, in a round")
    arguments.add_argument("--threads", type=int, default=cores(), help="that encode")
    arguments.add_argument("--nice", type=int, default=10, help="how far feeding gives way")
    arguments.add_argument("--timeout", type=float, default=30.0, help="seconds of a question")
    arguments.add_argument("--merge-after", type=int, default=2_000, help="writes of a shard")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        index = Path(directory) / "index"
        shutil.copytree(options.index, index)
        front = ("--feed-threads", str(options.threads), "--feed-nice", str(options.nice))
        node = ("--merge-after", str(options.merge_after))
        plan = LocalPlan(
            index,
            default_bundle(),
            "127.0.0.1:0",
            feed_listen="127.0.0.1:0",
            front=front,
            node=node,
        )
        with LocalCluster(plan) as cluster:
            cluster.start()
            asyncio.run(cluster.wait_ready())
            return show(asyncio.run(measure(cluster, options)), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
