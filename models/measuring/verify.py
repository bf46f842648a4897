"""The gate that every quantised model passes, or is refused.

Compares PyTorch with float32 ONNX (they must agree) and float32 with int8 (it may lose a stated
amount of exact match, measured on gold paragraphs).
"""

from dataclasses import asdict, dataclass
from typing import Any

TOLERANCE = 2e-3
LEAST_COSINE = 0.98


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured, and what of it is not good enough."""

    encoder_difference: float
    reader_difference: float
    encoder_cosine: float
    """Mean cosine of float32 and int8 vectors."""
    em_float: dict[str, float]
    em_quantised: dict[str, float]
    faults: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def judge(
    encoder_difference: float,
    reader_difference: float,
    encoder_cosine: float,
    em_float: dict[str, float],
    em_quantised: dict[str, float],
    max_loss: float,
) -> Verdict:
    """Names every figure that is not good enough. Pure."""
    faults = []
    for name, difference in (("encoder", encoder_difference), ("reader", reader_difference)):
        if not difference <= TOLERANCE:
            faults.append(
                f"the {name}'s ONNX graph differs from PyTorch by {difference:.2g}, "
                f"at most {TOLERANCE:g} is allowed: export it again"
            )
    if not encoder_cosine >= LEAST_COSINE:
        faults.append(
            f"int8 vectors have a mean cosine of {encoder_cosine:.4f} with float32 ones, "
            f"at least {LEAST_COSINE:g} is wanted"
        )
    for name, exact in em_float.items():
        lost = exact - em_quantised[name]
        if not lost <= max_loss:
            faults.append(
                f"int8 loses {lost:.2f} exact match on {name}, at most {max_loss:g} is allowed"
            )
    return Verdict(
        encoder_difference, reader_difference, encoder_cosine, em_float, em_quantised, tuple(faults)
    )
