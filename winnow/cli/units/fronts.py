"""Measures the costs of the event loops of front nodes and content nodes.

First a front node asks one real shard. Then front nodes ask up to 128 fake shards that repeat its
replies (`fake_nodes`).
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from winnow import signals
from winnow.bundle import Bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.cli.plan.formulae import reading_shards
from winnow.cli.units.asking import MeanTimes, resident_memory, time_questions
from winnow.cli.units.fake_nodes import RecordedReplies, fake_shards
from winnow.client.messages import AnswerClient
from winnow.convert import shard as convert
from winnow.domain.question import EncodedQuestion
from winnow.errors import UnavailableError
from winnow.inference.encoder import open_question_encoder
from winnow.rpc.channel import open_channel
from winnow.sizing.synthetic import synthetic_passages
from winnow.sizing.units import FrontUnits, ProcessUnits
from winnow.telemetry.progress import StageProgress
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import shard_pb2, shard_pb2_grpc

SHARDS = (1, 8, 32, 128)
_SHARDS_WITH_READS = 32
"""Number of shards with which questions with `_READS` reads are measured, too."""
_READS = 10
_READY_TIMEOUT = 60.0
_POLL_SECONDS = 0.1
_NO_CACHES = ("--cache-mb", "0", "--answer-cache-mb", "0")
"""Flags that disable the caches of a front node."""


@dataclass(frozen=True, slots=True)
class FakeNodes:
    """The fake content nodes that front nodes are measured with."""

    replies: RecordedReplies
    shards_per_node: int = 1


def measure_fronts(
    nodes: FakeNodes,
    questions: Sequence[str],
    progress: StageProgress,
) -> FrontUnits:
    """Measures front nodes with different numbers of fake shards.

    Raises WinnowError if a process ended or did not become ready, or a question was not answered.
    """
    progress.start("asking fake shards", len(SHARDS))
    one_read, many_reads = {}, 0.0
    for number in SHARDS:
        with (
            fake_shards(nodes.replies, number, nodes.shards_per_node) as addresses,
            run_front(addresses) as (pid, address),
        ):
            one_read[number] = signals.run(_loop_ms(address, pid, questions, 1))
            if number == _SHARDS_WITH_READS:
                many_reads = signals.run(_loop_ms(address, pid, questions, _READS))
        progress.advance()
    added_ms = many_reads - one_read.get(_SHARDS_WITH_READS, many_reads)
    read_ms = max(added_ms / (reading_shards(_READS, _SHARDS_WITH_READS) - 1), 0.0)
    return fit_front_costs(one_read, read_ms)


def write_synthetic_passages(path: Path) -> None:
    """Writes synthetic passages as JSON lines."""
    rows = (each.passage for each in synthetic_passages())
    lines = (json.dumps({"id": p.id, "title": p.title, "text": p.text}) for p in rows)
    path.write_text("\n".join(lines), encoding="utf-8")


def measure_one_shard(
    index: Path, bundle: Bundle, questions: Sequence[str], progress: StageProgress
) -> tuple[ProcessUnits, RecordedReplies]:
    """Measures a cluster of the one shard at `index`, and records replies of its node.

    Raises WinnowError if a process ended or did not become ready, or a question was not answered.
    """
    progress.start("asking one shard", 1)
    plan = LocalPlan(index, bundle.directory, f"127.0.0.1:{free_ports(1)[0]}", front=_NO_CACHES)
    with LocalCluster(plan) as cluster:
        cluster.start()
        signals.run(cluster.wait_ready())
        node, front = cluster.processes.pid("node 0"), cluster.processes.pid("front")
        times, client_ms = signals.run(_ask_and_time(cluster.address, [node], questions))
        replies = signals.run(record_replies(cluster.nodes[0], bundle, questions[0]))
        process = ProcessUnits(
            # a question has two calls; the rest of the CPU time is for retrieving and reading
            call_ms=round(max(times.cpu[0] - times.node, 0.0) / 2, 4),
            client_ms=round(client_ms, 4),
            node_bytes=resident_memory(node),
            front_bytes=resident_memory(front),
        )
    progress.advance()
    return process, replies


async def _ask_and_time(
    address: str, pids: Sequence[int], questions: Sequence[str]
) -> tuple[MeanTimes, float]:
    """Measures the mean times of the cluster, and this client's CPU milliseconds per question."""
    async with AnswerClient(address) as client:
        await time_questions(client, questions[:1], 1, pids)
        before = time.process_time()
        times = await time_questions(client, questions, 1, pids)
        return times, 1e3 * (time.process_time() - before) / len(questions)


async def record_replies(address: str, bundle: Bundle, question: str) -> RecordedReplies:
    """Records replies of the only shard of a content node."""
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special)
    ids = tokenizer.tokenise(question).ids
    vector = encoder.question(ids)
    encoded = EncodedQuestion(
        text=question, token_ids=ids, vector=vector, bundle_fingerprint=bundle.manifest.fingerprint
    )
    message = convert.question_to_message(encoded)
    async with open_channel(address) as channel:
        stub = shard_pb2_grpc.ShardServiceStub(channel)
        info = await stub.GetShardInfo(shard_pb2.GetShardInfoRequest(), timeout=_READY_TIMEOUT)
        retrieval = shard_pb2.RetrieveRequest(question=message, passages=_READS, candidates=100)
        retrieved = await stub.Retrieve(retrieval, timeout=_READY_TIMEOUT)
        reading = shard_pb2.ReadRequest(
            question=message,
            hits=retrieved.hits[:1],
            max_answer_tokens=10,
            generation=retrieved.generation,
        )
        read = await stub.Read(reading, timeout=_READY_TIMEOUT)
    return RecordedReplies(*(each.SerializeToString() for each in (info, retrieved, read)))


@contextmanager
def run_front(addresses: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Runs a front node of the shards at `addresses`; yields its process id and address."""
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    shard_flags = [flag for address in addresses for flag in ("--shards", address)]
    flags = ["--listen", listen, "--drain-linger", "0", "--log-level", "error", *_NO_CACHES]
    with tempfile.TemporaryFile() as log, Processes() as processes:
        processes.start("front", ["front", *shard_flags, *flags], log=log)
        signals.run(_wait_ready(listen, processes))
        yield processes.pid("front"), listen


async def _wait_ready(address: str, processes: Processes) -> None:
    deadline = time.monotonic() + _READY_TIMEOUT
    async with AnswerClient(address) as client:
        while not await client.available():
            if processes.exit_codes() or time.monotonic() > deadline:
                raise UnavailableError("the front node to be measured did not become ready")
            await asyncio.sleep(_POLL_SECONDS)


async def _loop_ms(address: str, pid: int, questions: Sequence[str], passages: int) -> float:
    """Measures the CPU milliseconds of a front node per question, without encoding."""
    async with AnswerClient(address) as client:
        times = await time_questions(client, questions, passages, [pid])
    return max(times.cpu[0] - times.encode, 0.01)


def fit_front_costs(one_read: Mapping[int, float], read_ms: float) -> FrontUnits:
    """Fits the costs of a front node.

    Args:
        one_read: milliseconds for a question that reads one passage, by number of shards. At least
            three numbers are needed.
        read_ms: milliseconds for each shard that reads.

    """
    shards = np.array(sorted(one_read), np.float64)
    times = np.array([one_read[int(number)] for number in shards]) - read_ms
    columns = [np.ones_like(shards), shards, shards * shards]
    costs = least_squares(columns, times)
    return FrontUnits(
        question_ms=round(costs[0], 4),
        shard_ms=round(costs[1], 4),
        pair_us=round(1e3 * costs[2], 4),
        read_ms=round(read_ms, 4),
    )


def least_squares(columns: list[np.ndarray], times: np.ndarray) -> list[float]:
    """Returns the cost of each column, by non-negative least squares of relative errors.

    So short times count as much as long ones.
    """
    used = list(range(len(columns)))
    while True:
        matrix = np.stack([columns[index] / times for index in used], axis=1)
        solution = np.linalg.lstsq(matrix, np.ones_like(times), rcond=None)[0]
        if (solution >= 0).all() or len(used) == 1:
            values = dict(zip(used, np.maximum(solution, 0.0).tolist(), strict=True))
            return [values.get(index, 0.0) for index in range(len(columns))]
        del used[int(np.argmin(solution))]
