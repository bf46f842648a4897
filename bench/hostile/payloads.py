"""Random gRPC messages and metadata, mostly invalid. Pure: takes a random generator.

All texts hold MARK, so that they are recognised where they turn up.
"""

import math
from random import Random
from typing import Any

import numpy as np

from winnow.v1 import answer_pb2, shard_pb2

MARK = "zzhostile"
ANSWER = "/winnow.v1.AnswerService/Answer"
SHARD = "/winnow.v1.ShardService/"
_VALID = 0.2
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
_SHARD_METHODS = (*("GetShardInfo", "Retrieve", "Read", "Search") * 5, MARK)


def question(chance: Random) -> tuple[str, bytes]:
    """Returns method and bytes of a call to a front."""
    if chance.random() < 0.02:
        return f"/winnow.v1.AnswerService/{MARK}", b""
    return ANSWER, _spoilt(_question(chance).SerializeToString(), chance)


def shard_call(chance: Random, fingerprint: str, dimension: int) -> tuple[str, bytes]:
    """Returns method and bytes of a call to a node with this fingerprint and dimension."""
    method = chance.choice(_SHARD_METHODS)
    asked = _encoded(chance, fingerprint, dimension)
    passages, tokens = chance.choice(_UINTS), chance.choice((0, 1, 10, 257, 2**32 - 1))
    message: Any = shard_pb2.GetShardInfoRequest()
    if method == "Retrieve":
        message = shard_pb2.RetrieveRequest(
            question=asked,
            passages=passages,
            candidates=chance.choice(_UINTS),
            by_words=chance.choice(_UINTS),
        )
    elif method == "Read":
        hits = [_hit(chance) for _ in range(chance.choice((0, 1, 2, 3)))]
        message = shard_pb2.ReadRequest(question=asked, hits=hits, max_answer_tokens=tokens)
    elif method == "Search":
        message = shard_pb2.SearchRequest(
            question=asked, passages=passages, max_answer_tokens=tokens
        )
    return SHARD + method, _spoilt(message.SerializeToString(), chance)


def metadata(chance: Random) -> tuple[tuple[str, str | bytes], ...]:
    """Returns random metadata; names of clients are nearly always new."""
    name = f"{MARK}-{chance.randrange(1_000_000)}"
    every: tuple[tuple[str, str | bytes], ...] = (
        ("x-winnow-client", name),
        ("x-request-id", chance.choice((name, MARK * 50, "{}"))),
        (f"x-{name}", MARK),
        ("x-long", MARK * 300),
        (f"x-{MARK}-bin", chance.randbytes(30)),
    )
    return tuple(pair for pair in every if chance.random() < 0.5)


def _question(chance: Random) -> answer_pb2.AnswerRequest:
    options: dict[str, Any] = {
        "passages_to_read": chance.choice(_UINTS),
        "answers": chance.choice(_UINTS),
        "read_scope": chance.choice(_ENUMS),
        "retriever": chance.choice(_ENUMS),
        "max_answer_tokens": chance.choice(_UINTS),
        "max_loss": chance.choice(_FLOATS),
        "partial_results": chance.choice(_ENUMS),
        "min_coverage": chance.choice(_FLOATS),
        "min_wait_factor": chance.choice(_FLOATS),
        "max_wait_factor": chance.choice(_FLOATS),
        "fresh": chance.choice((False, True)),
    }
    sent = chance.sample(sorted(options), chance.randrange(4))
    # valid requests are few and small, so that this is no overload
    few = {"passages_to_read": 1 if chance.random() < _VALID else 0}
    return answer_pb2.AnswerRequest(
        question=chance.choice(_TEXTS), **{**few, **{name: options[name] for name in sent}}
    )


def _encoded(chance: Random, fingerprint: str, dimension: int) -> shard_pb2.EncodedQuestion:
    size = chance.choice((dimension, dimension, dimension, 0, 1, dimension + 1))
    vector = np.array([chance.gauss(0, 1) for _ in range(size)], dtype="<f4")
    norm = float(np.linalg.norm(vector)) or 1.0
    tokens = chance.choice((1, 5, 5, 5, 0, 64, 600))
    most = chance.choice((1_000, 1_000, 1_000, 2**32 - 1))
    return shard_pb2.EncodedQuestion(
        text=chance.choice(_TEXTS),
        token_ids=[chance.randrange(most) for _ in range(tokens)],
        vector=(vector / norm * chance.choice((1.0, 1.0, 1.0, 0.0, math.nan))).tobytes(),
        bundle_fingerprint=chance.choice((fingerprint, fingerprint, fingerprint, MARK * 20)),
    )


def _hit(chance: Random) -> shard_pb2.Hit:
    row = chance.choice((0, 1, 2, 3, 10**6, 2**63, 2**64 - 1))
    return shard_pb2.Hit(
        row=row,
        passage_id=MARK,
        distance=chance.choice(_FLOATS),
        hybrid_distance=chance.choice(_FLOATS),
        words=chance.choice(_FLOATS),
        sequence=chance.choice((0, 1, 2**64 - 1)),
    )


def _spoilt(data: bytes, chance: Random) -> bytes:
    """Returns data as it is, cut, with a wrong bit, with an unknown field, or random bytes."""
    way = chance.randrange(10)
    if way == 0:
        return data[: chance.randrange(len(data) + 1)]
    if way == 1 and data:
        at = chance.randrange(len(data))
        return data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]
    if way == 2:  # field 1000, of the kind that has a length
        return data + b"\xc2\x3e\x09" + MARK.encode()
    if way == 3:
        return chance.randbytes(chance.randrange(2_000))
    if way == 4:  # a text that is not UTF-8
        return data + b"\x0a\x02\xff\xfe"
    return data
