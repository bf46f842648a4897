"""What feeding through a front node costs: its rate, and its effect on questions.

    python -m bench feeding --index INDEX --passages FILE --questions FILE [--rounds 5]

Serves a copy of INDEX as `winnow up --feed-listen` does, and measures in one interleaved run:

- the rate of feeding passages until they are durable, against that of the encoder alone on the
  same passages, in threads of this process (wanted: a share of at least 0.9);
- the latency of questions, asked one after the other, while passages are fed at half of that rate,
  against the latency without feeding (wanted: p99 at most 1.3 times as long, by its 95 % interval);
- how many of the questions were answered from all shards, from some, refused or late (wanted: all
  complete). `--merge-after` has nodes merge often meanwhile.
"""

import argparse
import asyncio
import contextlib
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from statistics import median

from bench import quantiles
from bench.figures import Figure, at_least, quantile, show
from bench.inputs import add_index_and_questions
from bench.inputs import questions as read
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
"""Targets of the rate of feeding, and of the p99 of questions beside it."""
AT_ONCE = 4
"""Requests that feed at the same time."""
REQUEST, SMALL = 50, 10
"""Passages of a request, at full rate and at half of it."""
PLAIN, BESIDE = "without feeding", "beside feeding"


class Source:
    """Passages of a file, again and again, always under new ids: so each is stored."""

    def __init__(self, path: Path) -> None:
        rows = islice((row for row in read_rows(path) if isinstance(row, Row)), 20_000)
        self._passages = [row.passage for row in rows]
        self._numbers = count()

    def take(self, number: int) -> list[Passage]:
        """Returns the next passages."""
        found = []
        for place in islice(self._numbers, number):
            passage = self._passages[place % len(self._passages)]
            found.append(Passage(f"fed-{place}", passage.title, passage.text))
        return found


class BareEncoder:
    """The encoder alone, on tokenised passages."""

    def __init__(self, threads: int) -> None:
        bundle = load_bundle(default_bundle())
        self._tokenizer, self._threads = Tokenizer(bundle.tokenizer), threads
        options = InferenceOptions(runs=threads)
        model = open_passage_encoder(bundle, self._tokenizer.special, options)
        self._encoder = PassageEncoder(model, bundle.manifest.encoder)

    def rate(self, passages: Sequence[Passage]) -> float:
        """Returns passages a second."""
        work = [
            (self._tokenizer.tokenise(each.title).ids, self._tokenizer.tokenise(each.text).ids)
            for each in passages
        ]
        started = time.perf_counter()
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(lambda pair: self._encoder.encode(*pair), work))
        return len(work) / (time.perf_counter() - started)


async def put(client: AsyncClient, passages: Sequence[Passage]) -> None:
    """Stores passages; waits as long as a full front says, and repeats a late request at once."""
    fields: list[PassageFields] = [
        {"id": each.id, "title": each.title, "text": each.text} for each in passages
    ]
    while True:
        try:
            await client.put(fields)
        except OverloadedError as error:
            await asyncio.sleep(error.retry_after)
        except DeadlineExceededError:
            continue
        else:
            return


async def feed_rate(client: AsyncClient, passages: Sequence[Passage]) -> float:
    """Feeds at full rate; returns passages a second until the last one is durable."""
    parts = (passages[start : start + REQUEST] for start in range(0, len(passages), REQUEST))
    started = time.perf_counter()

    async def work() -> None:
        for part in parts:
            await put(client, part)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    return len(passages) / (time.perf_counter() - started)


async def feed_at(client: AsyncClient, source: Source, rate: float, until: asyncio.Event) -> int:
    """Feeds small requests at a rate, until an event; returns the number of passages.

    The front refuses some of them for a while where questions leave too little of the machine.
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


@dataclass(slots=True)
class QuestionSeries:
    """Questions that were asked one after the other."""

    taken: list[float] = field(default_factory=list)
    """Seconds of each question; a late one took the timeout."""
    outcomes: Counter[str] = field(default_factory=Counter)

    async def ask(self, client: AnswerClient, questions: Sequence[str], timeout: float) -> None:
        """Asks more questions."""
        for question in questions:
            request = answer_pb2.AnswerRequest(question=question, max_loss=0, fresh=True)
            began = time.perf_counter()
            try:
                reply = await client.ask(request, timeout=timeout)
                outcome = "complete" if reply.coverage.complete else "incomplete"
            except OverloadedError:
                outcome = "refused"
            except DeadlineExceededError:
                outcome = "late"
            self.outcomes[outcome] += 1
            self.taken.append(time.perf_counter() - began)


async def measure(cluster: LocalCluster, options: argparse.Namespace) -> list[Figure]:
    """Runs the rounds; returns the figures."""
    source, bare = Source(options.passages), BareEncoder(options.threads)
    questions = read(options.questions)
    encoded, feds, beside = list[float](), list[float](), list[float]()
    series = {PLAIN: QuestionSeries(), BESIDE: QuestionSeries()}
    async with AsyncClient(cluster.feed) as feeding, AnswerClient(cluster.address) as client:
        await feed_rate(feeding, source.take(REQUEST))
        await QuestionSeries().ask(client, questions[:20], options.timeout)
        for number in range(options.rounds):
            passages = source.take(options.block)
            encoded.append(await asyncio.to_thread(bare.rate, passages))
            feds.append(await feed_rate(feeding, passages))
            start = number * options.questions_each
            places = range(start, start + options.questions_each)
            asked = [questions[place % len(questions)] for place in places]
            await series[PLAIN].ask(client, asked, options.timeout)
            enough = asyncio.Event()
            background = asyncio.create_task(feed_at(feeding, source, median(feds) / 2, enough))
            began = time.perf_counter()
            await series[BESIDE].ask(client, asked, options.timeout)
            enough.set()
            fed = await background
            # the last passages are stored after the last question
            beside.append(fed / (time.perf_counter() - began))
            print(
                f"round {number + 1}: encoder {encoded[-1]:.1f}/s, feeding {feds[-1]:.1f}/s; "
                f"{fed} fed beside {len(asked)} questions",
                file=sys.stderr,
                flush=True,
            )
    found = [*rates(encoded, feds, beside), *latencies(series[PLAIN].taken, series[BESIDE].taken)]
    return found + [each for name, one in series.items() for each in outcomes(name, one.outcomes)]


def rates(encoded: list[float], feds: list[float], beside: list[float]) -> list[Figure]:
    """Returns passages a second, and the share of the encoder's rate that feeding reaches."""
    shares = [fed / raw for fed, raw in zip(feds, encoded, strict=True)]
    spread = (min(shares), max(shares))
    share = Figure("feeding", "feeding, of the encoder", median(shares), "times", spread=spread)
    return [
        Figure("feeding", "the encoder alone, passages", median(encoded), "/s"),
        Figure("feeding", "feeding, passages", median(feds), "/s"),
        at_least(share, LEAST_SHARE),
        Figure("feeding", "fed beside questions, passages", median(beside), "/s"),
    ]


def latencies(calm: list[float], busy: list[float]) -> list[Figure]:
    """Returns quantiles of the questions without feeding and beside it."""
    grown = quantiles.ratio(quantiles.quantile(busy, 0.99), quantiles.quantile(calm, 0.99))
    return [
        *(
            quantile("questions", name, taken, share)
            for name, taken in ((PLAIN, calm), (BESIDE, busy))
            for share in (0.5, 0.99)
        ),
        Figure(
            "questions",
            "p99 beside feeding, of without (95 %)",
            grown.value,
            "times",
            spread=(grown.low, grown.high),
            wanted=f"at most {MOST_SLOWER:g}",
            holds=quantiles.within(grown, MOST_SLOWER),
        ),
    ]


def outcomes(name: str, counted: Counter[str]) -> list[Figure]:
    """Returns the counts of outcomes; all are wanted to be complete."""
    return [
        Figure("questions", f"{name}: {outcome}", count)
        if outcome == "complete"
        else Figure("questions", f"{name}: {outcome}", count, wanted="0", holds=not count)
        for outcome, count in sorted(counted.items())
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench feeding`."""
    add_index_and_questions(parser)
    parser.add_argument("--passages", type=Path, required=True, help="file as for building")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--block", type=int, default=1_000, help="passages fed in a round")
    parser.add_argument(
        "--questions-each", type=int, default=200, help="questions of a round, each way"
    )
    parser.add_argument("--threads", type=int, default=cores(), help="threads that encode")
    parser.add_argument("--nice", type=int, default=10, help="niceness of the feeding threads")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds of a question")
    parser.add_argument("--merge-after", type=int, default=2_000, help="writes of a shard")


def run(options: argparse.Namespace) -> int:
    """Measures on a copy of the index; returns the exit code."""
    with tempfile.TemporaryDirectory() as directory:
        index = Path(directory) / "index"
        shutil.copytree(options.index, index)
        plan = LocalPlan(
            index,
            default_bundle(),
            "127.0.0.1:0",
            feed_listen="127.0.0.1:0",
            front=("--feed-threads", str(options.threads), "--feed-nice", str(options.nice)),
            node=("--merge-after", str(options.merge_after)),
        )
        with LocalCluster(plan) as cluster:
            cluster.start()
            asyncio.run(cluster.wait_ready())
            return show(asyncio.run(measure(cluster, options)), as_json=options.json)
