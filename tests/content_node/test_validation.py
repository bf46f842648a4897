"""Nothing that a peer sends is an internal error: it is served, or refused for what is wrong."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import OneShardNode
from grpc import StatusCode
from hypothesis import given, settings
from hypothesis import strategies as st
from manual_clock import ManualClock
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle
from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.searcher import LocalSearcher
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.validation import QuestionLimits, question_limits
from winnow.domain.question import EncodedQuestion, QuestionTokens
from winnow.domain.shard import shard_name
from winnow.errors import InvalidRequestError, WinnowError
from winnow.policy.pace import Pace
from winnow.reading import open_reader
from winnow.reading.pool import ReaderPool
from winnow.rpc.status import code_of
from winnow.shard_service.servicer import ShardServicer
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import shard_pb2

REFUSED = {StatusCode.INVALID_ARGUMENT, StatusCode.FAILED_PRECONDITION, StatusCode.ABORTED}
UINT32 = st.one_of(st.integers(0, 20), st.integers(0, 2**32 - 1))
UNIT = np.full(384, 384**-0.5, "<f4").tobytes()
FLOAT = st.one_of(st.floats(0, 4, width=32), st.floats(width=32))


class Caller:
    """A context of a call that has time."""

    def time_remaining(self) -> float:
        return 60.0

    def invocation_metadata(self) -> tuple[()]:
        return ()


class Node:
    """A node with a real shard and the real models."""

    def __init__(self, bundle: Bundle, shard: Path) -> None:
        self.fingerprint = bundle.manifest.fingerprint
        metrics = NodeMetrics(CollectorRegistry())
        self.pool = ReaderPool(2, 2, metrics)
        reader = open_reader(bundle, Tokenizer(bundle.tokenizer).special)
        pace = Pace(2.0, ManualClock())
        opened = view_of(open_shard(shard, ef=16, exact_up_to=0))
        self.generation = opened.manifest.generation
        searcher = LocalSearcher(opened, reader, bundle, self.pool, pace=pace, metrics=metrics)
        self.servicer = ShardServicer(OneShardNode(searcher), 60.0)

    def question(self) -> st.SearchStrategy[shard_pb2.EncodedQuestion]:
        ids = st.one_of(st.just([2040]), st.lists(UINT32), st.just([1] * 512))
        vectors = st.one_of(
            st.just(UNIT),
            st.binary(max_size=64),
            st.lists(FLOAT, min_size=384, max_size=384).map(
                lambda values: np.array(values, "<f4").tobytes()
            ),
        )
        prints = st.one_of(st.just(self.fingerprint), st.text(max_size=4))
        return st.builds(
            lambda *parts: shard_pb2.EncodedQuestion(
                text=parts[0], token_ids=parts[1], vector=parts[2], bundle_fingerprint=parts[3]
            ),
            st.text(max_size=4),
            ids,
            vectors,
            prints,
        )

    def hits(self) -> st.SearchStrategy[list[shard_pb2.Hit]]:
        rows = st.one_of(st.integers(0, 12), st.integers(0, 2**64 - 1))
        return st.lists(
            st.builds(
                lambda row, near, hybrid: shard_pb2.Hit(
                    row=row, distance=near, hybrid_distance=hybrid
                ),
                rows,
                FLOAT,
                FLOAT,
            ),
            max_size=3,
        )

    def status(self, method: Callable[[Any, Any], Awaitable[Any]], request: Any) -> StatusCode:
        """What the call ends in; raises what would be an internal error."""

        error = self.error(method, request)
        return StatusCode.OK if error is None else code_of(error)

    def error(self, method: Callable[[Any, Any], Awaitable[Any]], request: Any) -> Any:
        """The error that the call ends in, or None; raises what would be an internal error."""

        async def call() -> WinnowError | None:
            try:
                (await method(request, Caller())).SerializeToString()
            except WinnowError as error:
                return error
            return None

        return asyncio.run(call())


@pytest.fixture(scope="module")
def node(bundle: Bundle, indexes: dict[int, Path]) -> Iterator[Node]:
    made = Node(bundle, indexes[1] / shard_name(0, 1))
    yield made
    made.pool.close()


@settings(max_examples=60)
@given(st.data())
def test_reading(node: Node, data: st.DataObject) -> None:
    request = shard_pb2.ReadRequest(
        question=data.draw(node.question()),
        hits=data.draw(node.hits()),
        max_answer_tokens=data.draw(UINT32),
        generation=data.draw(st.sampled_from(["", node.generation, "other"])),
    )
    assert node.status(node.servicer.Read, request) in {StatusCode.OK, *REFUSED}


@settings(max_examples=60)
@given(st.data())
def test_retrieving(node: Node, data: st.DataObject) -> None:
    request = shard_pb2.RetrieveRequest(
        question=data.draw(node.question()),
        passages=data.draw(UINT32),
        candidates=data.draw(UINT32),
        by_words=data.draw(UINT32),
        filter=data.draw(st.sampled_from(["", "", "", "year = 1"])),
    )
    assert node.status(node.servicer.Retrieve, request) in {StatusCode.OK, *REFUSED}


@settings(max_examples=40)
@given(st.data())
def test_searching(node: Node, data: st.DataObject) -> None:
    request = shard_pb2.SearchRequest(
        question=data.draw(node.question()),
        passages=data.draw(UINT32),
        candidates=data.draw(UINT32),
        by_words=data.draw(UINT32),
        max_answer_tokens=data.draw(UINT32),
    )
    assert node.status(node.servicer.Search, request) in {StatusCode.OK, *REFUSED}


def test_a_request_without_anything_is_refused(node: Node) -> None:
    for method, request in (
        (node.servicer.Read, shard_pb2.ReadRequest()),
        (node.servicer.Retrieve, shard_pb2.RetrieveRequest()),
        (node.servicer.Search, shard_pb2.SearchRequest()),
    ):
        assert node.status(method, request) is StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "hits",
    [
        [],
        [shard_pb2.Hit(row=12)],
        [shard_pb2.Hit(row=1), shard_pb2.Hit(row=1)],
        [shard_pb2.Hit(row=1, distance=-1.0)],
        [shard_pb2.Hit(row=1, distance=float("nan"))],
        [shard_pb2.Hit(row=1, hybrid_distance=float("inf"))],
        [shard_pb2.Hit(row=1, words=-1.0)],
        [shard_pb2.Hit(row=1, words=float("nan"))],
        [shard_pb2.Hit(row=row) for row in range(1_001)],
    ],
    ids=[
        *("none", "no row", "twice", "negative", "no number", "infinite"),
        *("less than no words", "words without a number", "too many"),
    ],
)
def test_impossible_hits_are_refused(node: Node, hits: list[shard_pb2.Hit]) -> None:
    question = shard_pb2.EncodedQuestion(
        token_ids=[2040], vector=UNIT, bundle_fingerprint=node.fingerprint
    )
    fine = shard_pb2.ReadRequest(
        question=question, hits=[shard_pb2.Hit(row=1)], max_answer_tokens=10
    )
    assert node.status(node.servicer.Read, fine) is StatusCode.OK
    wrong = shard_pb2.ReadRequest(question=question, hits=hits, max_answer_tokens=10)
    assert node.status(node.servicer.Read, wrong) is StatusCode.INVALID_ARGUMENT


MARK = "\u2620"
"""Nothing of Winnow's own has it."""
MARKED = st.one_of(st.just(""), st.just(MARK * 100_000))


@settings(max_examples=60)
@given(st.data())
def test_errors_quote_little_of_a_peers_message(node: Node, data: st.DataObject) -> None:
    question = shard_pb2.EncodedQuestion(
        text=data.draw(MARKED),
        token_ids=data.draw(st.sampled_from([[2040], [], [2**32 - 1] * 100_000])),
        vector=data.draw(st.sampled_from([UNIT, b"", b"\0" * 400_001, UNIT * 100])),
        bundle_fingerprint=data.draw(st.one_of(st.just(node.fingerprint), MARKED)),
    )
    hits = [shard_pb2.Hit(row=data.draw(UINT32), passage_id=data.draw(MARKED))]
    read = shard_pb2.ReadRequest(
        question=question,
        hits=hits * data.draw(st.sampled_from([1, 2])),
        max_answer_tokens=10,
        generation=data.draw(MARKED),
    )
    search = shard_pb2.SearchRequest(question=question, passages=1, max_answer_tokens=10)
    retrieve = shard_pb2.RetrieveRequest(question=question, passages=1)
    for method, request in (
        (node.servicer.Read, read),
        (node.servicer.Search, search),
        (node.servicer.Retrieve, retrieve),
    ):
        error = node.error(method, request)
        assert str(error).count(MARK) <= 200
        assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (4, np.ones((2, 4))),  # a question of one token has three with the special ones
        (4, np.ones((3, 5))),
        (0, np.ones((3, 4))),  # the bundle has no late interaction
        (32, np.full((3, 32), 5_000)),  # products would not be exact
    ],
)
def test_token_vectors_that_no_encoder_makes_are_refused(
    values: int, levels: NDArray[np.float64]
) -> None:
    tokens = QuestionTokens(levels.astype(np.int16), np.ones(len(levels), np.float32))
    vector = np.array([1.0, 0.0], np.float32)
    question = EncodedQuestion(
        text="", token_ids=(5,), vector=vector, bundle_fingerprint="", tokens=tokens
    )
    limits = QuestionLimits(max_tokens=9, vocabulary=10, token_values=values)
    with pytest.raises(InvalidRequestError, match="token_levels"):
        limits.check(question)


def test_the_limits_are_those_of_the_bundle(bundle: Bundle) -> None:
    limits = question_limits(bundle)
    assert (limits.max_tokens, limits.vocabulary) == (62, 30_522)
