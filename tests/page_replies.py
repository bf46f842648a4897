"""Replies for the web page, with something in every part of them."""

from winnow.v1 import answer_pb2, cluster_pb2, head_pb2

OPENED = "In 1923 😀 the cafe\u0301 in Łódź was opened by Zoe\u0308 Nowak, whose brother had baked there."
CAFE = f"The street was a market 😀 until then. {OPENED} It closed in 1951."
GUIDE = "https://example.org/guides/lodz.pdf"
NAME = "Zoe\u0308 Nowak"


def whole_reply() -> answer_pb2.AnswerResponse:
    """Returns a reply with an answer and two candidates, from two shards."""
    reply = answer_pb2.AnswerResponse(
        has_answer=True,
        coverage=answer_pb2.Coverage(
            passages_known=1_200, passages_searched=1_200, passages_failed=0, complete=True
        ),
        timings=_timings(),
        passages_read=3,
        passages_asked=3,
        passages_granted=3,
        read_scope=answer_pb2.READ_SCOPE_GLOBAL,
        request_id="of-the-front",
    )
    _answer(reply, "cafe", CAFE, NAME, 8.5, 0.91, shard=0)
    best = reply.answers[0]
    best.sentence_start = CAFE.index(OPENED)
    best.sentence_end, best.sentence_confidence = best.sentence_start + len(OPENED), 0.94
    best.passage.metadata.update(
        {
            "year": 1923,
            "lang": "pl",
            "document": "guides/Łódź.pdf",
            "page": 4,
            "document_hash": "00",
        }
    )
    best.source.MergeFrom(
        answer_pb2.Source(
            document="guides/Łódź.pdf", page=4, headings=["Cafés", "The first café"], url=GUIDE
        )
    )  # fmt: skip
    text = "Łódź grew from 800 people to 300,000 within a century, and Adam Nowak built its mills."
    _answer(reply, "mills", text, "Adam Nowak", 4.25, 0.12, shard=1)
    text = "A café is a place where coffee is served. The first one in Poland opened in 1724."
    _answer(reply, "coffee", text, "1724", -2.5, 0.004, shard=1)
    status = answer_pb2.ShardCoverage.STATUS_SEARCHED
    for shard in range(2):
        reply.coverage.shards.add(shard=shard, passages=600, status=status)
    return reply


def partial_reply() -> answer_pb2.AnswerResponse:
    """Returns the reply of `whole_reply` while a third shard is late, with results of heads."""
    reply = whole_reply()
    coverage = reply.coverage
    coverage.passages_known, coverage.passages_failed, coverage.complete = 1_800, 600, False
    late = answer_pb2.ShardCoverage.STATUS_TIMEOUT
    coverage.shards.add(shard=2, passages=600, status=late, reason="no reply in time")
    reply.timings.calls.add(
        shard=2,
        kind=answer_pb2.ShardCall.KIND_RETRIEVE,
        outcome=answer_pb2.ShardCall.OUTCOME_ABANDONED,
        start_ms=5.2,
        ms=32.1,
    )
    reply.heads.add(
        head_id="intent",
        version=1,
        out_of_scope=True,
        labels=[
            head_pb2.LabelScore(label="restaurant_reviews", score=0.61, assigned=True),
            head_pb2.LabelScore(label="travel_suggestion", score=0.22),
        ],
    )
    entity = head_pb2.Entity(label="location", text="Łódź", start=23, end=27, score=0.97)
    reply.heads.add(head_id="entities", version=1, entities=[entity])
    reply.heads.add(head_id="mood", failure="there is no head mood in this encoder group")
    return reply


def busy_cluster() -> cluster_pb2.GetClusterResponse:
    """Returns a cluster of two serving shards, one with an ejected replica, and a missing shard."""
    states = cluster_pb2.ReplicaState
    reply = cluster_pb2.GetClusterResponse(
        front=cluster_pb2.FrontState(
            version="1.2.3",
            bundle_name="default",
            up_seconds=4_000,
            answers=True,
            feeds=True,
            questions_answered=12_345,
            questions_refused=6,
            questions_in_hand=3,
            reads_in_hand=27,
            seconds_per_read=0.0061,
        ),
        index_id="0123456789abcdef",
        rings=[head_pb2.Ring(name="default", warm=[head_pb2.WarmHead(head_id="intent")])],
    )
    for shard in range(3):
        reply.shards.add(shard=shard, passages=600, sequence=9)
    serving = {"state": states.STATE_SERVING, "heard_seconds": 0.3, "seconds_per_read": 0.012}
    first, second = reply.shards[0], reply.shards[1]
    first.replicas.add(address="10.0.0.1:9000", calls_in_hand=2, reads_in_hand=14, **serving)
    first.replicas.add(
        address="10.0.0.2:9000",
        state=states.STATE_OUT,
        reason="it failed or was slow, and is tried again soon",
        lag=4,
        heard_seconds=0.4,
    )
    second.replicas.add(address="10.0.0.3:9000", calls_in_hand=1, reads_in_hand=13, **serving)
    reply.strangers.add(
        address="10.0.0.9:9000",
        state=states.STATE_UNREACHABLE,
        reason="10.0.0.9:9000: connection refused",
    )
    return reply


def _answer(
    reply: answer_pb2.AnswerResponse,
    identifier: str,
    text: str,
    answer: str,
    score: float,
    confidence: float,
    shard: int,
) -> None:
    start = text.index(answer)
    made = reply.answers.add(
        text=answer,
        start=start,
        end=start + len(answer),
        score=score,
        confidence=confidence,
        shard=shard,
        relevance=score / 2,
        span_score=score + 1,
        distance=1 - score / 20,
        hybrid_distance=0.5 - score / 20,
        words=score + 3,
    )
    made.sentence_end = len(text)
    made.size, made.shown_text = answer_pb2.ANSWER_SIZE_SPAN, answer
    made.passage.CopyFrom(answer_pb2.Passage(id=identifier, title=identifier.title(), text=text))


def _timings() -> answer_pb2.Timings:
    kinds, answered = answer_pb2.ShardCall, answer_pb2.ShardCall.OUTCOME_ANSWERED
    timings = answer_pb2.Timings(
        tokenise_ms=0.4, queue_ms=0.6, encode_ms=4.0, retrieve_ms=3.8, read_ms=28.0, merge_ms=0.3,
        total_ms=37.5, retrieve_start_ms=5.1, read_start_ms=8.9, merge_start_ms=37.0,
    )  # fmt: skip
    for shard in range(2):
        timings.shards.add(shard=shard, retrieve_ms=1.5, read_ms=20)
        timings.calls.add(
            shard=shard, kind=kinds.KIND_RETRIEVE, outcome=answered, start_ms=5.2, ms=3.2 + shard / 2,
            retrieve_start_ms=6.0, retrieve_ms=1.5 + shard / 2,
        )  # fmt: skip
    read = timings.calls.add(shard=0, kind=kinds.KIND_READ, outcome=answered, start_ms=9.0, ms=14.0)
    read.reads.add(passage_id="cafe", start_ms=10.0, ms=12.4)
    read = timings.calls.add(shard=1, kind=kinds.KIND_READ, outcome=answered, start_ms=9.1, ms=27.5)
    read.reads.add(passage_id="mills", start_ms=10.2, ms=13.0)
    read.reads.add(passage_id="coffee", start_ms=12.0, ms=23.9)
    return timings
