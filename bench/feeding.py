"""Measures the rate of feeding through a front node, and its effect on questions.

    python -m bench feeding --index INDEX --passages FILE --questions FILE [--rounds 5]

Serves a copy of INDEX as `winnow up --feed-listen` does, and measures in one interleaved run:

- the feeding rate, at which fed passages become durable, divided by the rate at which the encoder
  alone encodes the same passages in this process (target: at least 0.9);
- the p99 latency of consecutive questions while passages are fed at half the feeding rate, divided
  by the p99 without feeding (target: at most 1.3, by the 95 % confidence interval);
- the numbers of questions that are answered completely, answered incompletely, refused, and late
  (target: all complete).

A small `--merge-after` makes nodes merge often during the run.
"""

import argparse
import asyncio
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from statistics import median

from bench import quantiles
from bench.figures import Figure, at_least, print_figures
from bench.inputs import add_index_and_questions, read_question_texts
from bench.outcomes import QuestionOutcomes
from winnow.bundle import load_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client import AsyncClient, PassageFields
from winnow.client.messages import AnswerClient
from winnow.domain.passage import Passage
from winnow.errors import DeadlineExceededError, OverloadedError
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.options import InferenceOptions
from winnow.packaged import default_bundle
from winnow.passages.encoding import PassageEncoder
from winnow.passages.rows import Row, read_rows
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2

MIN_RATE_RATIO, MAX_P99_RATIO = 0.9, 1.3
"""Targets: feeding rate / encoder rate, and p99 of questions with feeding / without."""
CONCURRENT_REQUESTS = 4
"""Number of put requests in flight at full rate."""
FULL_RATE_BATCH, HALF_RATE_BATCH = 50, 10
"""Passages per put request, at full rate and at half rate."""
WITHOUT_FEEDING, WITH_FEEDING = "without feeding", "beside feeding"


class PassageSource:
    """Cycles through the passages of a file. Each passage has a new id, so that nodes store it."""

    def __init__(self, path: Path) -> None:
        rows = islice((row for row in read_rows(path) if isinstance(row, Row)), 20_000)
        self._passages = [row.passage for row in rows]
        self._numbers = count()

    def next_passages(self, count: int) -> list[Passage]:
        """Returns the next `count` passages."""
        passages = []
        for number in islice(self._numbers, count):
            passage = self._passages[number % len(self._passages)]
            passages.append(Passage(f"fed-{number}", passage.title, passage.text))
        return passages


class BareEncoder:
    """The passage encoder without a front node, to measure its rate."""

    def __init__(self, threads: int) -> None:
        bundle = load_bundle(default_bundle())
        self._tokenizer, self._threads = Tokenizer(bundle.tokenizer), threads
        options = InferenceOptions(runs=threads)
        model = open_passage_encoder(bundle, self._tokenizer.special, options)
        self._encoder = PassageEncoder(model, bundle.manifest.encoder)

    def measure_rate(self, passages: Sequence[Passage]) -> float:
        """Encodes passages; returns the number per second, without tokenisation."""
        work = [
            (
                self._tokenizer.tokenise(passage.title).ids,
                self._tokenizer.tokenise(passage.text).ids,
            )
            for passage in passages
        ]
        started = time.perf_counter()
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(lambda pair: self._encoder.encode(*pair), work))
        return len(work) / (time.perf_counter() - started)


def batched(passages: Sequence[Passage], size: int) -> Iterator[Sequence[Passage]]:
    """Yields consecutive batches of at most `size` passages."""
    for start in range(0, len(passages), size):
        yield passages[start : start + size]


async def put_until_stored(client: AsyncClient, passages: Sequence[Passage]) -> None:
    """Stores passages, and retries until they are stored.

    Waits as long as an overloaded front asks for; retries at once after a timeout.
    """
    fields: list[PassageFields] = [
        {"id": passage.id, "title": passage.title, "text": passage.text} for passage in passages
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


async def feed_at_full_rate(client: AsyncClient, passages: Sequence[Passage]) -> float:
    """Feeds passages at full rate; returns the number of durable passages per second."""
    batches = batched(passages, FULL_RATE_BATCH)
    started = time.perf_counter()

    async def work() -> None:
        for batch in batches:
            await put_until_stored(client, batch)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONCURRENT_REQUESTS):
            group.create_task(work())
    return len(passages) / (time.perf_counter() - started)


async def feed_at_rate(
    client: AsyncClient, source: PassageSource, rate: float, stop: asyncio.Event
) -> int:
    """Feeds `rate` passages per second until `stop` is set; returns the number of passages.

    The front may refuse a request while questions need the machine. `put_until_stored` repeats it.
    """
    fed, started = 0, time.perf_counter()
    async with asyncio.TaskGroup() as group:
        while not stop.is_set():
            group.create_task(put_until_stored(client, source.next_passages(HALF_RATE_BATCH)))
            fed += HALF_RATE_BATCH
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(started + fed / rate - time.perf_counter(), 0)):
                    await stop.wait()
    return fed


async def ask_questions(
    client: AnswerClient, questions: Sequence[str], timeout: float, series: QuestionOutcomes
) -> None:
    """Asks questions one after the other. A late question counts with its timeout."""
    for question in questions:
        request = answer_pb2.AnswerRequest(question=question, max_loss=0, fresh=True)
        started = time.perf_counter()
        try:
            reply = await client.ask(request, timeout=timeout)
            outcome = "complete" if reply.coverage.complete else "incomplete"
        except OverloadedError:
            outcome = "refused"
        except DeadlineExceededError:
            outcome = "late"
        series.outcomes[outcome] += 1
        series.latencies.append(time.perf_counter() - started)


async def measure_feeding(cluster: LocalCluster, options: argparse.Namespace) -> list[Figure]:
    """Runs the rounds; returns the figures."""
    source, bare_encoder = PassageSource(options.passages), BareEncoder(options.threads)
    questions = read_question_texts(options.questions)
    encoder_rates, feed_rates, background_rates = list[float](), list[float](), list[float]()
    without_feeding, with_feeding = QuestionOutcomes(), QuestionOutcomes()
    async with AsyncClient(cluster.feed) as feeding, AnswerClient(cluster.address) as client:
        await feed_at_full_rate(feeding, source.next_passages(FULL_RATE_BATCH))
        await ask_questions(client, questions[:20], options.timeout, QuestionOutcomes())
        for number in range(options.rounds):
            passages = source.next_passages(options.block)
            encoder_rates.append(await asyncio.to_thread(bare_encoder.measure_rate, passages))
            feed_rates.append(await feed_at_full_rate(feeding, passages))
            start = number * options.questions_each
            numbers = range(start, start + options.questions_each)
            batch = [questions[number % len(questions)] for number in numbers]
            await ask_questions(client, batch, options.timeout, without_feeding)
            stop = asyncio.Event()
            rate = median(feed_rates) / 2
            background = asyncio.create_task(feed_at_rate(feeding, source, rate, stop))
            started = time.perf_counter()
            await ask_questions(client, batch, options.timeout, with_feeding)
            stop.set()
            fed = await background
            # counts the time until the last passages are stored, after the last question
            background_rates.append(fed / (time.perf_counter() - started))
            print(
                f"round {number + 1}: encoder {encoder_rates[-1]:.1f}/s, "
                f"feeding {feed_rates[-1]:.1f}/s; {fed} passages fed during {len(batch)} questions",
                file=sys.stderr,
                flush=True,
            )
    return [
        *rate_figures(encoder_rates, feed_rates, background_rates),
        *without_feeding.latency_figures(WITHOUT_FEEDING),
        *with_feeding.latency_figures(WITH_FEEDING),
        p99_ratio_figure(without_feeding.latencies, with_feeding.latencies),
        *without_feeding.outcome_figures(WITHOUT_FEEDING),
        *with_feeding.outcome_figures(WITH_FEEDING),
    ]


def rate_figures(
    encoder_rates: list[float], feed_rates: list[float], background_rates: list[float]
) -> list[Figure]:
    """Returns the median rates in passages per second, and the median of feeding / encoder."""
    ratios = [fed / encoded for fed, encoded in zip(feed_rates, encoder_rates, strict=True)]
    spread = (min(ratios), max(ratios))
    ratio = Figure("feeding", "feeding / the encoder alone", median(ratios), "times", spread=spread)
    return [
        Figure("feeding", "the encoder alone, passages", median(encoder_rates), "/s"),
        Figure("feeding", "feeding, passages", median(feed_rates), "/s"),
        at_least(ratio, MIN_RATE_RATIO),
        Figure("feeding", "fed beside questions, passages", median(background_rates), "/s"),
    ]


def p99_ratio_figure(without_feeding: Sequence[float], with_feeding: Sequence[float]) -> Figure:
    """Returns the p99 with feeding divided by the p99 without, with its 95 % interval."""
    p99_ratio = quantiles.ratio(
        quantiles.quantile(with_feeding, 0.99), quantiles.quantile(without_feeding, 0.99)
    )
    return Figure(
        "questions",
        "p99 beside feeding / without (95 %)",
        p99_ratio.value,
        "times",
        spread=(p99_ratio.low, p99_ratio.high),
        target=f"at most {MAX_P99_RATIO:g}",
        holds=quantiles.is_at_most(p99_ratio, MAX_P99_RATIO),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench feeding`."""
    add_index_and_questions(parser)
    parser.add_argument(
        "--passages", type=Path, required=True, help="JSON lines, as for `winnow index build`"
    )
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds")
    parser.add_argument("--block", type=int, default=1_000, help="passages fed in a round")
    parser.add_argument(
        "--questions-each",
        type=int,
        default=200,
        help="questions in a round without feeding, and again with feeding",
    )
    parser.add_argument("--threads", type=int, default=cores(), help="encoder threads")
    parser.add_argument("--nice", type=int, default=10, help="niceness of the feeding threads")
    parser.add_argument(
        "--timeout", type=float, default=30.0, help="deadline of a question, in seconds"
    )
    parser.add_argument("--merge-after", type=int, default=2_000, help="writes before a merge")


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
            return print_figures(
                asyncio.run(measure_feeding(cluster, options)), as_json=options.json
            )
