"""A node process that answers, takes writes and merges at the same time."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from conftest import QUESTIONS
from tenacious import LONG, available, happens, turn

from winnow.bundle import Bundle
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.content_node.merging.names import generation_sequence, newest_first
from winnow.deadline import Deadline
from winnow.domain.passage import Passage
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo, shard_name
from winnow.domain.write import Outcome, Write
from winnow.errors import UnavailableError
from winnow.inference.encoder import open_question_encoder
from winnow.passages.encoding import pack
from winnow.rpc.channel import open_channel
from winnow.shard_service.remote import RemoteShardWriter
from winnow.stateless.replicas.remote import RemoteNode, RemoteSearcher
from winnow.text.tokenizer import Tokenizer

MERGES = 2
"""The second merge starts from a base that a merge wrote."""
FEW = 12
"""Number of writes after which a merge starts."""
NAMES = 400
"""Number of different ids; few enough that a question finds all of them."""
DEPTH = 500
"""Number of passages that a question retrieves."""


@dataclass
class Node:
    """A node's process, with the clients that a front has of it."""

    shard: Path
    processes: Processes
    searcher: RemoteSearcher
    writer: RemoteShardWriter
    questions: list[tuple[EncodedQuestion, str]]
    tokenizer: Tokenizer
    dimension: int
    stored: set[str] = field(default_factory=set)
    """Ids of the stored passages."""
    answered: int = 0

    async def info(self) -> ShardInfo:
        return await self.searcher.info(Deadline.after(LONG))

    async def ready(self) -> None:
        await available(self.info)

    async def ask(self, place: int) -> None:
        """Asks in two calls, as a front does, and expects the right answer."""
        question, expected = self.questions[place % len(self.questions)]
        found = await self.searcher.retrieve(
            question, RetrievalDepth(passages=3), Deadline.after(LONG)
        )
        await turn()  # let a swap come in between
        read = await self.searcher.read(question, found.hits[:3], Deadline.after(LONG))
        assert len(read.readings) == 3
        best = max(read.readings, key=lambda reading: reading.score)
        assert best.answer == expected
        self.answered += 1

    async def put(self, identifier: str, text: str) -> None:
        rng = np.random.default_rng(list(text.encode()))
        vector = rng.standard_normal(self.dimension)
        passage = pack(
            Passage(identifier, "", text),
            (),
            self.tokenizer.tokenise(text),
            (vector / np.linalg.norm(vector)).astype(np.float32),
        )
        await self._write(Write(identifier, None, passage))
        self.stored.add(identifier)

    async def delete(self, identifier: str) -> None:
        await self._write(Write(identifier))
        self.stored.remove(identifier)

    async def _write(self, write: Write) -> None:
        (written,) = await self.writer.write([write], Deadline.after(LONG))
        assert written.outcome is Outcome.STORED

    def generations(self) -> list[str]:
        return newest_first(path.name for path in (self.shard / "live").glob("*"))

    async def found(self) -> set[str]:
        """The ids of all passages that were put."""
        question = self.questions[0][0]
        found = await self.searcher.retrieve(
            question, RetrievalDepth(passages=DEPTH), Deadline.after(LONG)
        )
        return {hit.passage_id for hit in found.hits if hit.passage_id.startswith("fed")}


@pytest.fixture
async def node(bundle: Bundle, indexes: dict[int, Path], tmp_path: Path) -> AsyncIterator[Node]:
    shard = Path(shutil.copytree(indexes[1] / shard_name(0, 1), tmp_path / "shard"))
    (port,) = free_ports(1)
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special)
    fingerprint = bundle.manifest.fingerprint
    questions = []
    for text, answer in QUESTIONS:
        ids = tokenizer.tokenise(text).ids
        vector = encoder.question(ids)
        questions.append(
            (
                EncodedQuestion(
                    text=text, token_ids=tuple(ids), vector=vector, bundle_fingerprint=fingerprint
                ),
                answer,
            )
        )
    address = f"127.0.0.1:{port}"
    with Processes() as processes:
        arguments = ["node", "--shard", str(shard), "--listen", address, "--bundle"]
        arguments += [str(bundle.directory), "--feed", "--merge-after", str(FEW)]
        processes.start("node", [*arguments, "--exact-up-to", "0", "--drain-linger", "0"])
        async with open_channel(address) as channel:
            searcher = RemoteNode(channel, address).searcher(None)
            made = Node(
                shard,
                processes,
                searcher,
                RemoteShardWriter(
                    channel=channel, address=address, index_id="", shard=0, fingerprint=""
                ),
                questions,
                tokenizer,
                bundle.manifest.encoder.dimension,
            )
            await made.ready()
            info = await made.info()
            made.writer = RemoteShardWriter(
                channel=channel,
                address=address,
                index_id=info.index_id,
                shard=0,
                fingerprint=bundle.manifest.encoding_fingerprint,
            )
            yield made


async def fed_until_merged(node: Node, merges: int) -> None:
    """Puts, overwrites and deletes passages until the node serves this number of merges."""
    seen: set[str] = set()
    number = 0
    while len(seen) < merges:
        name, before = f"fed {number % NAMES}", f"fed {(number - 1) % NAMES}"
        await node.put(name, f"Drawer number {number} holds {number + 7} forks.")
        if number % 4 == 2:
            await node.delete(before)
        if number % 5 == 4:
            await node.put(name, f"Drawer number {number} is empty.")
        seen.update(node.generations())
        number += 1
        assert number < 20_000, "it was never merged"


async def test_no_question_fails_during_puts_deletions_and_merges(node: Node) -> None:
    feeding = asyncio.create_task(fed_until_merged(node, MERGES))

    async def ask(place: int) -> None:
        while not feeding.done():
            await node.ask(place)
            place += 1

    async with asyncio.timeout(5 * LONG):
        await asyncio.gather(feeding, ask(0))
        await node.ask(0)
        assert node.answered >= MERGES
        assert await node.found() == node.stored
        # the one before goes when the last one is served
        await happens(lambda: len(node.generations()) == 1)
    merged = generation_sequence(node.generations()[0])
    assert merged is not None
    assert 0 < merged <= (await node.info()).sequence


async def test_a_killed_node_keeps_merged_and_unmerged_writes(node: Node) -> None:
    """Merged and unmerged deletions persist."""
    async with asyncio.timeout(5 * LONG):
        for number in range(2 * FEW):
            await node.put(f"fed {number}", f"Drawer number {number} holds {number + 7} forks.")
            if number % 4 == 2:
                await node.delete(f"fed {number - 1}")
        await happens(lambda: bool(node.generations()))
        await node.put("fed last", "It was never merged.")
        await node.delete("fed 0")
        sequence = (await node.info()).sequence
        node.processes.send("node", signal.SIGKILL)
        node.processes.wait("node")
        with pytest.raises(UnavailableError):
            await node.info()
        node.processes.restart("node")
        await node.ready()
        info = await node.info()
        assert (info.sequence, info.passages) == (sequence, 12 + len(node.stored))
        assert await node.found() == node.stored
        await node.ask(0)
