"""Measures the costs of processes that serve: nodes that are called directly, and fronts.

Each call is measured after every core has read a passage.
"""

import asyncio
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np

from winnow import signals
from winnow.bundle import Bundle
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.cli.units.asking import WARM_UP, ProcessorClock
from winnow.cli.units.disturbance import Disturbance
from winnow.cli.units.fake_nodes import RecordedReplies, fake_shards
from winnow.cli.units.fronts import least_squares, record_replies, run_front
from winnow.cli.units.node_probe import CallTimes, NodeProbe
from winnow.client.messages import AnswerClient
from winnow.domain.question import EncodedQuestion
from winnow.index_directory import shard_directories
from winnow.inference.encoder import open_question_encoder
from winnow.python_command import python_command
from winnow.settings.common import cores
from winnow.sizing.serving import (
    QUANTILES,
    CallCosts,
    Drift,
    RetrievalCost,
    ServingUnits,
    SpreadCost,
)
from winnow.sizing.synthetic import synthetic_passages, synthetic_questions
from winnow.telemetry.progress import StageProgress
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2

PASSAGES, SHARDS = 1_000, 8
"""The measured index: as one shard, and as several."""
_READS = 3
"""Passages of a call that reads several."""
_FRONTS = ((1, 1, 1), (8, 1, 1), (8, 1, 10), (4, 16, 1))
"""Content nodes, shards of each, and passages to read, of the measured fronts."""
_TIMEOUT = 30.0
_READING_SECONDS = 15.0
"""Time in which the same passage is read again and again."""
_EPILOGUE = 0.003
"""Seconds after an answer in which processes finish the call."""


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """The size of the measurements."""

    questions: int = 100
    """Questions of each measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeCosts:
    """What was measured at a node of several shards with one thread."""

    calls: CallCosts
    retrieve: SpreadCost
    read: SpreadCost
    message_ms: float
    handover_ms: float


def write_many_passages(path: Path, count: int = PASSAGES) -> None:
    """Writes `count` synthetic passages as JSON lines."""
    own = [each.passage for each in synthetic_passages()]
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            passage, turn = own[number % len(own)], number // len(own)
            words = passage.text.split()
            text = " ".join([*words[7 * turn :], *words[: 7 * turn]])
            row = {"id": f"{passage.id}-{turn}", "title": passage.title, "text": text}
            file.write(json.dumps(row) + "\n")


def build_indexes(directory: Path, shards: Sequence[int]) -> dict[int, Path]:
    """Builds indexes of the same passages, which are encoded once; returns them by their shards.

    Indexes that are there already are kept.
    """
    source, found = directory / "passages.jsonl", dict[int, Path]()
    write_many_passages(source)
    for number in shards:
        found[number] = directory / f"index-{number}"
        flags = ["--passages", str(source), "--out", str(found[number]), "--shards", str(number)]
        if not found[number].exists():
            command = python_command("winnow", "index", "build", *flags)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        source = found[number]
    return found


def measure_serving(
    bundle: Bundle, indexes: dict[int, Path], plan: ServingPlan, progress: StageProgress
) -> ServingUnits:
    """Measures the costs of serving with indexes of one shard and of `SHARDS` shards.

    Raises WinnowError if a process ended, or a question was not answered.
    """
    questions = _encoded(bundle, plan.questions)
    with Disturbance(bundle.directory) as disturb:
        progress.start("reading equal passages", None)
        alone, reading = disturb.read_for(_READING_SECONDS)
        progress.start("calling content nodes", 2)
        with _node(indexes[SHARDS], threads=1) as (pid, address):
            node = signals.run(_probe_node(address, pid, disturb, questions))
        progress.advance()
        with _node(indexes[1], threads=cores()) as (pid, address):
            large = signals.run(_probe_large(address, pid, disturb, questions))
            replies = signals.run(record_replies(address, bundle, questions[0].text))
        progress.advance()
        progress.start("asking fronts", len(_FRONTS))
        asked = []
        for shape in _FRONTS:
            asked.append(_ask_front(shape, replies, bundle, questions, disturb))
            progress.advance()
    costs = least_squares(
        [
            np.array(column, np.float64)
            for column in zip(*(each.parts for each in asked), strict=True)
        ],
        np.array([each.loop_ms for each in asked]),
    )
    return ServingUnits(
        question_ms=costs[0],
        front=CallCosts(
            call_ms=costs[1], shard_ms=costs[2], read_ms=costs[3], spread=asked[0].spread
        ),
        node=node.calls,
        encode=asked[0].encode,
        retrieve=(
            RetrievalCost(passages=PASSAGES // SHARDS, cost=node.retrieve),
            RetrievalCost(passages=PASSAGES, cost=large),
        ),
        read=node.read,
        together=min(fmean(alone) / fmean(reading), 1.0),
        drift=fit_drift(alone, _READING_SECONDS / len(alone)),
        client_ms=asked[0].client_ms,
        message_ms=node.message_ms,
        handover_ms=node.handover_ms,
    )


def _encoded(bundle: Bundle, count: int) -> list[EncodedQuestion]:
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special)
    found = []
    for text in synthetic_questions()[:: 400 // count or 1][:count]:
        ids = tokenizer.tokenise(text).ids
        encoding = encoder.encode_question(ids)
        found.append(
            EncodedQuestion(
                text=text,
                token_ids=ids,
                vector=encoding.vector,
                tokens=encoding.tokens,
                bundle_fingerprint=bundle.manifest.fingerprint,
            )
        )
    return found


@contextmanager
def _node(index: Path, threads: int) -> Iterator[tuple[int, str]]:
    """Runs a content node of all shards of an index; yields its process id and address."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    shards = [flag for each in shard_directories(index) for flag in ("--shard", str(each))]
    limits = ["--threads", str(threads), "--reader-threads", str(threads)]
    flags = ["--listen", address, "--drain-linger", "0", "--log-level", "error", *limits]
    with tempfile.TemporaryFile() as log, Processes() as processes:
        processes.start("node", ["node", *shards, *flags], log=log)
        yield processes.pid("node"), address


async def _probe_node(
    address: str, pid: int, disturb: Callable[[], None], questions: Sequence[EncodedQuestion]
) -> _NodeCosts:
    """Measures a node of `SHARDS` shards with one thread."""
    probe = NodeProbe(address, pid, disturb)
    await probe.wait_ready(SHARDS)
    for each in questions[:WARM_UP]:
        await probe.retrieve(each, SHARDS)
        await probe.read(each, _READS)
    described = [await probe.describe() for _ in questions]
    alone, joint, one, several = (list[CallTimes]() for _ in range(4))
    for number, each in enumerate(questions):
        alone.append(await probe.retrieve(each))
        joint.append(await probe.retrieve(each, SHARDS))
        # a question's lower layers are computed once: each call reads for another question
        if number % 2:
            several.append(await probe.read(each, _READS))
        else:
            one.append(await probe.read(each, 1))
    await probe.close()
    loop = [each.node.others for each in alone]
    thread = [each.node.busiest_thread for each in alone]
    reading = [each.node.busiest_thread for each in one]
    read_ms = (fmean([each.node.busiest_thread for each in several]) - fmean(reading)) / (
        _READS - 1
    )
    base_ms = fmean([each.node.total for each in one]) - read_ms
    of_all, of_one = (fmean([each.node.total for each in calls]) for calls in (joint, alone))
    message_ms = max(median([each.waiting for each in described]) / 2, 0.0)
    handover_ms = max(median([each.waiting for each in alone]) / 2 - message_ms, 0.0)
    return _NodeCosts(
        calls=CallCosts(
            call_ms=max(fmean(loop), 0.0),
            shard_ms=max((of_all - of_one) / (SHARDS - 1) - fmean(thread), 0.0),
            read_ms=max(base_ms, 0.0),
            spread=_spread(loop),
        ),
        retrieve=SpreadCost(ms=fmean(thread), spread=_spread(thread)),
        read=SpreadCost(ms=read_ms, spread=_spread(reading)),
        message_ms=message_ms,
        handover_ms=handover_ms,
    )


async def _probe_large(
    address: str,
    pid: int,
    disturb: Callable[[], None],
    questions: Sequence[EncodedQuestion],
) -> SpreadCost:
    """Measures retrieval from a large shard."""
    probe = NodeProbe(address, pid, disturb)
    await probe.wait_ready(1)
    for each in questions[:WARM_UP]:
        await probe.read(each, _READS * cores())
    thread = [(await probe.retrieve(each)).node.busiest_thread for each in questions]
    await probe.close()
    return SpreadCost(ms=fmean(thread), spread=_spread(thread))


def fit_drift(seconds: Sequence[float], interval: float) -> Drift:
    """Fits the drift of a machine to times of equal work, of which one began each `interval`.

    Only the order of the times counts, so a few very long ones hardly do. Their autocorrelations
    are taken for c, c·a, c·a², …, until they vanish: c is that of neighbours. Drift that lasts
    longer than about a tenth of the measurement is underestimated.
    """
    _, places, counts = np.unique(seconds, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - counts / 2)[places]  # equal times have the same
    ranks -= ranks.mean()
    square, found = float(ranks @ ranks), list[float]()
    for lag in range(1, len(ranks) // 2 if square else 1):
        correlation = float(ranks[lag:] @ ranks[:-lag]) / square
        if correlation <= 0:
            break
        found.append(correlation)
    if not (later := sum(found[1:])):
        return Drift()
    kept = later / (found[0] + later)
    return Drift(correlation=min(found[0] / kept, 1.0), seconds=-interval / math.log(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class _FrontTimes:
    """What was measured at a front."""

    parts: tuple[float, ...]
    """A question, and its calls, further shards and calls that read."""
    loop_ms: float
    spread: tuple[float, ...]
    encode: SpreadCost
    client_ms: float


def _ask_front(
    shape: tuple[int, int, int],
    replies: RecordedReplies,
    bundle: Bundle,
    questions: Sequence[EncodedQuestion],
    disturb: Callable[[], None],
) -> _FrontTimes:
    nodes, shards, passages = shape
    with (
        fake_shards(replies, nodes * shards, shards, bundle.directory) as addresses,
        run_front(addresses) as (pid, address),
    ):
        texts = [each.text for each in questions]
        return signals.run(_time_front(address, pid, texts, shape, passages, disturb))


async def _time_front(
    address: str,
    pid: int,
    questions: Sequence[str],
    shape: tuple[int, int, int],
    passages: int,
    disturb: Callable[[], None],
) -> _FrontTimes:
    nodes, shards, _ = shape
    loop, encode, own, readers = list[float](), list[float](), list[float](), list[int]()
    request = answer_pb2.AnswerRequest(
        passages_to_read=passages, answers=passages, max_loss=0, fresh=True
    )
    async with AnswerClient(address) as client:
        for number, text in enumerate([*questions[:WARM_UP], *questions]):
            request.question = text
            disturb()
            front, own_before = ProcessorClock(pid), time.process_time()
            reply = await client.ask(request, _TIMEOUT)
            await asyncio.sleep(_EPILOGUE)
            spent, own_spent = front.read(), time.process_time() - own_before
            if number < WARM_UP:
                continue
            loop.append(spent.others)
            encode.append(spent.busiest_thread)
            own.append(1e3 * own_spent)
            readers.append(sum(each.read_ms > 0 for each in reply.timings.shards))
    return _FrontTimes(
        parts=(1.0, nodes, nodes * (shards - 1), fmean(readers)),
        loop_ms=fmean(loop),
        spread=_spread(loop),
        encode=SpreadCost(ms=fmean(encode), spread=_spread(encode)),
        client_ms=fmean(own),
    )


def _spread(values: Sequence[float]) -> tuple[float, ...]:
    """Returns quantiles of the values, divided by their mean."""
    own = np.maximum(np.array(values), 0.0)
    quantiles = np.quantile(own, QUANTILES) / max(float(own.mean()), 1e-9)
    return tuple(quantiles.round(4).tolist())
