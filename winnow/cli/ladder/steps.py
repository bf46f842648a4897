"""The steps of the ladder: each adds one lever to the step before. Pure."""

from dataclasses import KW_ONLY, dataclass
from enum import Enum

SEED = (
    "Roblox (2020) says that its levers made BERT over 30 times as fast before its cache, see "
    "blog.roblox.com/2020/05/scaled-bert-serve-1-billion-daily-requests-cpus"
)
HEADS = 10
"""Predictions for one text where heads share an encoder."""
PADDED = 128
"""Length that texts are padded to, as Roblox began."""


class Precision(str, Enum):
    """How a model's weights are stored."""

    FLOAT = "fp32"
    INT8 = "int8"


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """The size of an encoder of BERT's kind; its inner layers are four times as wide."""

    name: str
    layers: int
    width: int
    attention: int = 12
    """Attention heads."""


BERT = EncoderShape("bert-base", 12, 768)
DISTILBERT = EncoderShape("distilbert", 6, 768)
MINILM = EncoderShape("minilm", 6, 384)


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One way of classifying texts."""

    name: str
    shape: EncoderShape
    precision: Precision = Precision.FLOAT
    _: KW_ONLY
    pad_to: int = 0
    """Length in tokens that texts are padded to; 0 for no padding."""
    heads: int = 0
    """Number of heads on the token states of the encoder; 0 if the encoder has a classifier."""
    cached: bool = False
    """Whether encodings are cached by token ids, and texts are drawn by Zipf's law."""

    @property
    def predictions(self) -> int:
        """Number of predictions for one text."""
        return self.heads or 1


STEPS = (
    LadderStep("BERT-base, fp32, padded to 128", BERT, pad_to=PADDED),
    LadderStep("DistilBERT-shaped, padded to 128", DISTILBERT, pad_to=PADDED),
    LadderStep("dynamic shapes", DISTILBERT),
    LadderStep("int8", DISTILBERT, Precision.INT8),
    LadderStep("MiniLM-shaped", MINILM, Precision.INT8),
    LadderStep(f"{HEADS} heads on one encoding", MINILM, Precision.INT8, heads=HEADS),
    LadderStep("cache by token ids", MINILM, Precision.INT8, heads=HEADS, cached=True),
)
