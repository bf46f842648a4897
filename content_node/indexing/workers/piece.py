"""What a worker is given, and what comes of it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Tokens = tuple[int, ...]
Vectors = NDArray[np.float32]
"""[passages, dimension]"""


@dataclass(frozen=True, slots=True)
class PassageBatch:
    """Some passages that are encoded together, one after the other."""

    rows: tuple[int, ...]
    """Their sequence numbers in the staging database."""
    passages: tuple[tuple[Tokens, Tokens], ...]
    """Token ids of title and text."""


@dataclass(frozen=True, slots=True)
class Came:
    """A worker is ready."""

    worker: int


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """A worker has encoded a piece."""

    worker: int
    piece: PassageBatch
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker is gone, or never came."""

    worker: int
    pieces: tuple[PassageBatch, ...]
    """What it had in hand."""
    reason: str


Event = Came | EncodedBatch | Lost


def piece_of(chunk: Sequence[tuple[int, Tokens, Tokens]]) -> PassageBatch:
    """A piece of staged passages."""
    return PassageBatch(
        tuple(row for row, _, _ in chunk), tuple((title, text) for _, title, text in chunk)
    )
