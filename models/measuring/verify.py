"""The gate that every quantised model passes, or is refused.

Compares PyTorch with float32 ONNX (they must agree) and float32 with int8 and bfloat16 (they may
lose a stated amount of exact match, measured on gold paragraphs).
"""

from dataclasses import asdict, dataclass
from typing import Any

from winnow.inference.runtime import FLOAT

TOLERANCE = 2e-3
LEAST_COSINE = 0.98


@dataclass(frozen=True, slots=True)
class EncoderParity:
    """Differences between the encoder's graphs and the trained encoder."""

    difference: float
    """Largest one of PyTorch and float32 ONNX."""
    cosine: float
    """Mean one of float32 and int8 vectors."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Measured figures, and the faults among them."""

    encoder: EncoderParity | None
    """None if the encoder was copied from another bundle."""
    reader_difference: float
    """Largest one of PyTorch and float32 ONNX."""
    exact_match: dict[str, dict[str, float]]
    """Exact match at gold paragraphs, by question set and precision."""
    faults: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Returns plain values."""
        return asdict(self)


def judge(
    encoder: EncoderParity | None,
    reader_difference: float,
    exact_match: dict[str, dict[str, float]],
    max_loss: float,
) -> Verdict:
    """Returns a verdict with every figure that is not good enough. Pure."""
    faults = []
    differences = {"reader": reader_difference}
    if encoder is not None:
        differences["encoder"] = encoder.difference
    for name, difference in differences.items():
        if not difference <= TOLERANCE:
            faults.append(
                f"the {name}'s ONNX graph differs from PyTorch by {difference:.2g}, "
                f"at most {TOLERANCE:g} is allowed: export it again"
            )
    if encoder is not None and not encoder.cosine >= LEAST_COSINE:
        faults.append(
            f"int8 vectors have a mean cosine of {encoder.cosine:.4f} with float32 ones, "
            f"at least {LEAST_COSINE:g} is wanted"
        )
    for name, found in exact_match.items():
        for precision, exact in found.items():
            lost = found[FLOAT] - exact
            if not lost <= max_loss:
                faults.append(
                    f"{precision} loses {lost:.2f} exact match on {name}, at most {max_loss:g} is "
                    "allowed"
                )
    return Verdict(encoder, reader_difference, exact_match, tuple(faults))
