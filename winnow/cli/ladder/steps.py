"""The steps of the ladder. Each adds one lever to the previous step. Pure."""

from dataclasses import KW_ONLY, dataclass
from enum import Enum

ROBLOX_NOTE = (
    "Roblox (2020) reports that its levers made BERT over 30 times as fast, without its cache: "
    "blog.roblox.com/2020/05/scaled-bert-serve-1-billion-daily-requests-cpus"
)
HEADS = 10
"""Number of heads that share an encoder."""
PADDED_TOKENS = 128
"""Number of tokens that texts are padded to, as in the first step of Roblox."""


class Precision(str, Enum):
    """Precision of a model's weights."""

    FLOAT = "fp32"
    INT8 = "int8"


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """The size of a BERT encoder. Its feed-forward layers are four times as wide as `width`."""

    name: str
    layers: int
    width: int
    attention_heads: int = 12


BERT = EncoderShape("bert-base", 12, 768)
DISTILBERT = EncoderShape("distilbert", 6, 768)
MINILM = EncoderShape("minilm", 6, 384)


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One configuration of text classification."""

    name: str
    shape: EncoderShape
    precision: Precision = Precision.FLOAT
    _: KW_ONLY
    pad_to: int = 0
    """Number of tokens that texts are padded to; 0 for no padding."""
    heads: int = 0
    """Number of heads on the encoder's token states; 0 for an encoder with a classifier."""
    cached: bool = False
    """Whether encodings are cached by token ids. If so, texts are drawn by Zipf's law."""

    @property
    def predictions(self) -> int:
        """Number of predictions for one text."""
        return self.heads or 1


STEPS = (
    LadderStep("BERT-base, fp32, padded to 128", BERT, pad_to=PADDED_TOKENS),
    LadderStep("DistilBERT-shaped, padded to 128", DISTILBERT, pad_to=PADDED_TOKENS),
    LadderStep("dynamic shapes", DISTILBERT),
    LadderStep("int8", DISTILBERT, Precision.INT8),
    LadderStep("MiniLM-shaped", MINILM, Precision.INT8),
    LadderStep(f"{HEADS} heads on one encoding", MINILM, Precision.INT8, heads=HEADS),
    LadderStep("cache by token ids", MINILM, Precision.INT8, heads=HEADS, cached=True),
)
