"""The description of an encoder of texts, wherever it runs."""

from dataclasses import dataclass
from enum import Enum


class StatesFormat(str, Enum):
    """How token states travel."""

    NONE = "none"
    """Not at all: the vector alone."""
    FLOAT16 = "float16"
    """As the encoder gives them."""
    INT8 = "int8"
    """A byte a value and a scale a token: half the size, rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderInfo:
    """The identity of an encoder and its limits."""

    bundle: str
    """The name of its bundle, for people."""
    fingerprint: str
    """Vectors and states are comparable only between equal ones."""
    dimension: int
    """Values of a vector."""
    width: int
    """Values of a token's state; 0 if it gives none."""
    max_tokens: int
    """Most token ids of a text, without special tokens."""
