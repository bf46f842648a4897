"""Measures what the event loops of running front nodes and content nodes cost.

First a front node asks one real shard. Then front nodes ask up to a hundred shards that repeat the
replies of the real one (`canned`).
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from winnow import signals
from winnow.bundle import Bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.cli.plan.formulae import distinct
from winnow.cli.units.asking import MeanTimes, ask, estimate_memory
from winnow.cli.units.canned import CannedReplies, canned_shards
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
_SPREAD_OVER = 32
"""Number of shards at which reads of many shards are measured."""
_MANY = 10
_READY = 60.0
_POLL_SECONDS = 0.1
_PLAIN = ("--cache-mb", "0", "--answer-cache-mb", "0")
"""Flags of a front node without caches."""


def measure(
    index: Path,
    bundle: Bundle,
    questions: Sequence[str],
    progress: StageProgress,
    shards: Sequence[int] = SHARDS,
) -> tuple[FrontUnits, ProcessUnits]:
    """Asks a cluster of one shard at `index`, then front nodes of canned shards.

    Raises WinnowError if a process ended or did not become ready, or a question was not answered.
    """
    progress.start("asking one shard", 1)
    process, replies = _measure_real(index, bundle, questions)
    progress.advance()
    progress.start("asking canned shards", len(shards))
    one_read, several = {}, 0.0
    for number in shards:
        with canned_shards(replies, number) as addresses, _front(addresses) as (pid, address):
            one_read[number] = signals.run(_loop_ms(address, pid, questions, 1))
            if number == _SPREAD_OVER:
                several = signals.run(_loop_ms(address, pid, questions, _MANY))
        progress.advance()
    more = several - one_read.get(_SPREAD_OVER, several)
    read_ms = max(more / (distinct(_MANY, _SPREAD_OVER) - 1), 0.0)
    return fitted(one_read, read_ms), process


def write_passages(path: Path) -> None:
    """Writes made-up passages for an index."""
    rows = (each.passage for each in synthetic_passages())
    lines = (json.dumps({"id": p.id, "title": p.title, "text": p.text}) for p in rows)
    path.write_text("\n".join(lines), encoding="utf-8")


def _measure_real(
    index: Path, bundle: Bundle, questions: Sequence[str]
) -> tuple[ProcessUnits, CannedReplies]:
    plan = LocalPlan(index, bundle.directory, f"127.0.0.1:{free_ports(1)[0]}", front=_PLAIN)
    with LocalCluster(plan) as cluster:
        cluster.start()
        signals.run(cluster.wait_ready())
        node, front = cluster.processes.pid("node 0"), cluster.processes.pid("front")
        asked, client_ms = signals.run(_ask_from_here(cluster.address, [node], questions))
        replies = signals.run(_replies(cluster.nodes[0], bundle, questions[0]))
        process = ProcessUnits(
            # a question has two calls; retrieving and reading are not of the event loop
            call_ms=round(max(asked.spent[0] - asked.node, 0.0) / 2, 4),
            client_ms=round(client_ms, 4),
            node_bytes=estimate_memory(node),
            front_bytes=estimate_memory(front),
        )
    return process, replies


async def _ask_from_here(
    address: str, pids: Sequence[int], questions: Sequence[str]
) -> tuple[MeanTimes, float]:
    """The mean times there, and the processor time of this process for a question."""
    async with AnswerClient(address) as client:
        await ask(client, questions[:1], 1, pids)
        before = time.process_time()
        asked = await ask(client, questions, 1, pids)
        return asked, 1e3 * (time.process_time() - before) / len(questions)


async def _replies(address: str, bundle: Bundle, question: str) -> CannedReplies:
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
        info = await stub.GetShardInfo(shard_pb2.GetShardInfoRequest(), timeout=_READY)
        wanted = shard_pb2.RetrieveRequest(question=message, passages=_MANY, candidates=100)
        found = await stub.Retrieve(wanted, timeout=_READY)
        reading = shard_pb2.ReadRequest(
            question=message,
            hits=found.hits[:1],
            max_answer_tokens=10,
            generation=found.generation,
        )
        read = await stub.Read(reading, timeout=_READY)
    return CannedReplies(*(each.SerializeToString() for each in (info, found, read)))


@contextmanager
def _front(addresses: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Runs a front node of the shards at `addresses`; gives its process id and its address."""
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    asking = [flag for address in addresses for flag in ("--shards", address)]
    flags = ["--listen", listen, "--drain-linger", "0", "--log-level", "error", *_PLAIN]
    with tempfile.TemporaryFile() as log, Processes() as processes:
        processes.start("front", ["front", *asking, *flags], log=log)
        signals.run(_wait_ready(listen, processes))
        yield processes.pid("front"), listen


async def _wait_ready(address: str, processes: Processes) -> None:
    until = time.monotonic() + _READY
    async with AnswerClient(address) as client:
        while not await client.available():
            if processes.exit_codes() or time.monotonic() > until:
                raise UnavailableError("the front node to be measured did not become ready")
            await asyncio.sleep(_POLL_SECONDS)


async def _loop_ms(address: str, pid: int, questions: Sequence[str], passages: int) -> float:
    """Milliseconds of a front node's event loop for a question, without encoding."""
    async with AnswerClient(address) as client:
        asked = await ask(client, questions, passages, [pid])
    return max(asked.spent[0] - asked.encode, 0.01)


def fitted(one_read: Mapping[int, float], read_ms: float) -> FrontUnits:
    """The costs of a front node.

    Args:
        one_read: milliseconds of its event loop for a question that reads one passage, by number of
            shards; at least three numbers.
        read_ms: cost of each shard that reads.

    """
    shards = np.array(sorted(one_read), np.float64)
    spent = np.array([one_read[int(number)] for number in shards]) - read_ms
    columns = [np.ones_like(shards), shards, shards * shards]
    found = _least_squares(columns, spent)
    return FrontUnits(
        question_ms=round(found[0], 4),
        shard_ms=round(found[1], 4),
        pair_us=round(1e3 * found[2], 4),
        read_ms=round(read_ms, 4),
    )


def _least_squares(columns: list[np.ndarray], spent: np.ndarray) -> list[float]:
    """Non-negative least squares of relative errors, so that few shards matter as much as many."""
    used = list(range(len(columns)))
    while True:
        matrix = np.stack([columns[place] / spent for place in used], axis=1)
        found = np.linalg.lstsq(matrix, np.ones_like(spent), rcond=None)[0]
        if (found >= 0).all() or len(used) == 1:
            values = dict(zip(used, np.maximum(found, 0.0).tolist(), strict=True))
            return [values.get(place, 0.0) for place in range(len(columns))]
        del used[int(np.argmin(found))]
