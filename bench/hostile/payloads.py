"""Makes random gRPC messages and metadata, most of them invalid.

Most texts contain MARK, so that leaked client input is easy to recognise.
"""

import math
from random import Random
from typing import Any

import numpy as np

from winnow.v1 import answer_pb2, shard_pb2

MARK = "zzhostile"
ANSWER = "/winnow.v1.AnswerService/Answer"
SHARD = "/winnow.v1.ShardService/"
_VALID_SHARE = 0.2
_UINTS = (0, 1, 2, 1_001, 2**31, 2**32 - 1)
_FLOATS = (0.0, 0.5, 1.0, -1.0, 1e-45, 3e38, math.nan, math.inf, -math.inf)
_ENUMS = (0, 1, 2, 3, 9, 2**31 - 1, -1)
_TEXTS = (
    "",
    " \t\n",
    MARK,
    f"who {MARK}?",
    f"{MARK}\0{MARK}",
    MARK * 100,
    MARK * 2_000,
    f"\u202e{MARK}\u0301\u0301 \U0001f3bb",
    "%s{}${HOME}'; DROP TABLE passages; --" + MARK,
)
_SHARD_METHODS = (*("ListShards", "GetShardInfo", "Retrieve", "Read", "Search") * 5, MARK)


def random_question(rng: Random) -> tuple[str, bytes]:
    """Returns the method and the message bytes of a call to a front."""
    if rng.random() < 0.02:
        return f"/winnow.v1.AnswerService/{MARK}", b""
    return ANSWER, _corrupted(_question_message(rng).SerializeToString(), rng)


def random_shard_call(rng: Random, fingerprint: str, dimension: int) -> tuple[str, bytes]:
    """Returns the method and the message bytes of a call to a content node.

    `fingerprint` and `dimension` are taken from the node, so that some calls are valid.
    """
    method = rng.choice(_SHARD_METHODS)
    question = _question_with_vector(rng, fingerprint, dimension)
    passages, tokens = rng.choice(_UINTS), rng.choice((0, 1, 10, 257, 2**32 - 1))
    message: Any = shard_pb2.GetShardInfoRequest()
    if method == "Retrieve":
        message = shard_pb2.RetrieveRequest(
            question=question,
            passages=passages,
            candidates=rng.choice(_UINTS),
            by_words=rng.choice(_UINTS),
        )
    elif method == "Read":
        hits = [_random_hit(rng) for _ in range(rng.choice((0, 1, 2, 3)))]
        message = shard_pb2.ReadRequest(question=question, hits=hits, max_answer_tokens=tokens)
    elif method == "Search":
        message = shard_pb2.SearchRequest(
            question=question, passages=passages, max_answer_tokens=tokens
        )
    return SHARD + method, _corrupted(message.SerializeToString(), rng)


def random_metadata(rng: Random) -> tuple[tuple[str, str | bytes], ...]:
    """Returns random metadata. Client names almost never repeat."""
    name = f"{MARK}-{rng.randrange(1_000_000)}"
    headers: tuple[tuple[str, str | bytes], ...] = (
        ("x-winnow-client", name),
        ("x-request-id", rng.choice((name, MARK * 50, "{}"))),
        (f"x-{name}", MARK),
        ("x-long", MARK * 300),
        (f"x-{MARK}-bin", rng.randbytes(30)),
    )
    return tuple(pair for pair in headers if rng.random() < 0.5)


def with_flipped_bit(data: bytes, rng: Random) -> bytes:
    """Returns `data`, which is not empty, with one random bit flipped."""
    flipped = bytearray(data)
    flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def _question_message(rng: Random) -> answer_pb2.AnswerRequest:
    options: dict[str, Any] = {
        "passages_to_read": rng.choice(_UINTS),
        "answers": rng.choice(_UINTS),
        "read_scope": rng.choice(_ENUMS),
        "retriever": rng.choice(_ENUMS),
        "max_answer_tokens": rng.choice(_UINTS),
        "max_loss": rng.choice(_FLOATS),
        "answer_size": rng.choice(_ENUMS),
        "min_confidence": rng.choice(_FLOATS),
        "partial_results": rng.choice(_ENUMS),
        "min_coverage": rng.choice(_FLOATS),
        "min_wait_factor": rng.choice(_FLOATS),
        "max_wait_factor": rng.choice(_FLOATS),
        "fresh": rng.choice((False, True)),
    }
    chosen = rng.sample(sorted(options), rng.randrange(4))
    # few requests are valid and all valid requests are small, so that the attack is no overload
    base = {"passages_to_read": 1 if rng.random() < _VALID_SHARE else 0}
    return answer_pb2.AnswerRequest(
        question=rng.choice(_TEXTS), **{**base, **{name: options[name] for name in chosen}}
    )


def _question_with_vector(
    rng: Random, fingerprint: str, dimension: int
) -> shard_pb2.EncodedQuestion:
    size = rng.choice((dimension, dimension, dimension, 0, 1, dimension + 1))
    vector = np.array([rng.gauss(0, 1) for _ in range(size)], dtype="<f4")
    norm = float(np.linalg.norm(vector)) or 1.0
    tokens = rng.choice((1, 5, 5, 5, 0, 64, 600))
    max_id = rng.choice((1_000, 1_000, 1_000, 2**32 - 1))
    return shard_pb2.EncodedQuestion(
        text=rng.choice(_TEXTS),
        token_ids=[rng.randrange(max_id) for _ in range(tokens)],
        vector=(vector / norm * rng.choice((1.0, 1.0, 1.0, 0.0, math.nan))).tobytes(),
        bundle_fingerprint=rng.choice((fingerprint, fingerprint, fingerprint, MARK * 20)),
    )


def _random_hit(rng: Random) -> shard_pb2.Hit:
    row = rng.choice((0, 1, 2, 3, 10**6, 2**63, 2**64 - 1))
    return shard_pb2.Hit(
        row=row,
        passage_id=MARK,
        distance=rng.choice(_FLOATS),
        hybrid_distance=rng.choice(_FLOATS),
        words=rng.choice(_FLOATS),
        sequence=rng.choice((0, 1, 2**64 - 1)),
    )


def _corrupted(data: bytes, rng: Random) -> bytes:
    """Returns `data` unchanged, truncated, or with a flipped bit or an invalid field.

    Sometimes returns random bytes instead.
    """
    choice = rng.randrange(10)
    if choice == 0:
        return data[: rng.randrange(len(data) + 1)]
    if choice == 1 and data:
        return with_flipped_bit(data, rng)
    if choice == 2:  # field 1000, length-delimited
        return data + b"\xc2\x3e\x09" + MARK.encode()
    if choice == 3:
        return rng.randbytes(rng.randrange(2_000))
    if choice == 4:  # a text that is not UTF-8
        return data + b"\x0a\x02\xff\xfe"
    return data
