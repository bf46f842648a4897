"""Limits that every exported model has to meet.

Float32 ONNX must agree with PyTorch. Int8 and bfloat16 may lose a limited amount of exact match
against float32, measured on gold paragraphs.
"""

from dataclasses import dataclass

from winnow.inference.runtime import FLOAT

TOLERANCE = 2e-3
"""Maximum absolute difference between the outputs of PyTorch and float32 ONNX."""
MIN_COSINE = 0.98
"""Minimum mean cosine between the float32 and the int8 vectors of a text."""


@dataclass(frozen=True, slots=True)
class EncoderParity:
    """Differences between the encoder's graphs and the trained encoder."""

    difference: float
    """Largest absolute difference between PyTorch and float32 ONNX."""
    cosine: float
    """Mean cosine between float32 and int8 vectors."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Measured figures, with the limits that they violate."""

    encoder: EncoderParity | None
    """None if the encoder was copied from another bundle, which is not verified again."""
    reader_difference: float
    """Largest absolute difference between PyTorch and float32 ONNX."""
    exact_match: dict[str, dict[str, float]]
    """Exact match on gold paragraphs in percent, by question set and precision."""
    faults: tuple[str, ...]
    """Messages about violated limits."""


def check_limits(
    encoder: EncoderParity | None,
    reader_difference: float,
    exact_match: dict[str, dict[str, float]],
    max_loss: float,
) -> Verdict:
    """Returns a verdict with a fault for every violated limit."""
    faults = []
    differences = {"reader": reader_difference}
    if encoder is not None:
        differences["encoder"] = encoder.difference
    for name, difference in differences.items():
        if not difference <= TOLERANCE:
            faults.append(
                f"the {name}'s ONNX graph differs from PyTorch by {difference:.2g}, "
                f"more than {TOLERANCE:g}: export it again"
            )
    if encoder is not None and not encoder.cosine >= MIN_COSINE:
        faults.append(
            f"int8 and float32 vectors have a mean cosine of {encoder.cosine:.4f}, "
            f"less than {MIN_COSINE:g}: train with more int8 steps (--quantised)"
        )
    for name, by_precision in exact_match.items():
        for precision, value in by_precision.items():
            lost = by_precision[FLOAT] - value
            if not lost <= max_loss:
                faults.append(
                    f"{precision} loses {lost:.2f} points of exact match on {name}, more than "
                    f"{max_loss:g}"
                )
    return Verdict(encoder, reader_difference, exact_match, tuple(faults))
