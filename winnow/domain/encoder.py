"""The description of a text encoder, local or remote."""

from dataclasses import dataclass
from enum import Enum


class StatesFormat(str, Enum):
    """The format of token states in messages."""

    NONE = "none"
    """States are not sent."""
    FLOAT16 = "float16"
    """States are sent as the encoder returns them."""
    INT8 = "int8"
    """States are rounded to one byte per value, with a scale per token: half of FLOAT16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderInfo:
    """The identity of an encoder and its limits."""

    bundle: str
    """The name of the encoder's bundle, for display."""
    fingerprint: str
    """Identifies the model: vectors and states are comparable only with equal fingerprints."""
    dimension: int
    """Number of values of a vector."""
    width: int
    """Number of values of a token's state; 0 if the encoder returns no states."""
    max_tokens: int
    """Maximum number of tokens of a text, without special tokens."""
    token_vectors: str = ""
    """Fingerprint of the token vectors for late interaction; empty if the encoder gives none."""
