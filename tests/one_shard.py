"""Answers a question from an index of one shard, without a server."""

import time
from pathlib import Path

from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle
from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.searcher import LocalSearcher
from winnow.content_node.shard import open_shard, view_of
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.reading import Reading
from winnow.domain.shard import shard_name
from winnow.inference.encoder import open_question_encoder
from winnow.policy.pace import Pace
from winnow.reading import open_reader
from winnow.reading.pool import ReaderPool
from winnow.text.tokenizer import Tokenizer


async def search(bundle: Bundle, index: Path, question: str, passages: int) -> list[Reading]:
    """Encodes a question, retrieves and reads passages; returns the readings, best first."""
    tokenizer = Tokenizer(bundle.tokenizer)
    ids = tokenizer.tokenise(question).ids
    vector = open_question_encoder(bundle, tokenizer.special).question(ids)
    encoded = EncodedQuestion(
        text=question,
        token_ids=tuple(ids),
        vector=vector,
        bundle_fingerprint=bundle.manifest.fingerprint,
    )
    metrics = NodeMetrics(CollectorRegistry())
    pool = ReaderPool(2, 2, metrics)
    try:
        view = view_of(open_shard(index / shard_name(0, 1), ef=100))
        reader = open_reader(bundle, tokenizer.special)
        pace = Pace(2.0, time.monotonic)
        searcher = LocalSearcher(view, reader, bundle, pool, pace=pace, metrics=metrics)
        read = await searcher.search(encoded, RetrievalDepth(passages=passages), Deadline.after(60))
    finally:
        pool.close()
    return sorted(read.readings, key=lambda reading: -reading.score)
