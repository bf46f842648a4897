"""A content node behind gRPC, as its front sees it."""

import asyncio
import contextlib

import numpy as np
from tenacious import turn

from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.rpc.channel import open_channel
from winnow.stateless.replicas.remote import RemoteNode

QUESTION = EncodedQuestion(
    text="who",
    token_ids=(1,),
    vector=np.array([1, 0], dtype=np.float32),
    bundle_fingerprint="b",
)


async def test_a_retrieval_counts_as_a_call_before_it_is_sent() -> None:
    """Else the channel of a node that has just left could be closed before."""
    async with open_channel("127.0.0.1:1") as channel:
        node = RemoteNode(channel, "127.0.0.1:1")
        retrieval = asyncio.create_task(
            node.searcher(0).retrieve(QUESTION, RetrievalDepth(passages=1), Deadline.after(60))
        )
        await turn()
        assert node.calls == 1
        retrieval.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await retrieval
