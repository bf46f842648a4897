"""Whether the confidence of answers can be believed, also where the index has no answer.

    winnow evaluate … --passages-to-read 11 --max-loss 0 --replies dev-nq.jsonl
    python bench/confidence.py --replies dev-nq.jsonl --replies dev-squad.jsonl [--plot curve.png]

Reads what `winnow evaluate --replies` wrote. Every question counts twice: as it was answered from
its best ten passages, and as it would have been without its gold passage, the next best in its
place. An answer is right if it is one of the accepted ones. Prints, for both together and apart:

- the calibration error: how far confidence and the share of right answers are apart, the mean over
  ten equal parts;
- for some precisions the least confidence that has them, and the share of right answers that is
  left.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.cli.evaluation.replies import read_whole_replies
from winnow.text.scores import exact_match

PARTS = 10
PRECISIONS = (0.7, 0.8, 0.9, 0.95)

Floats = NDArray[np.float64]


def best(row: dict[str, Any], passages: int, without_gold: bool) -> tuple[float, bool]:
    """Confidence of the best answer of a row, and whether it is right; 0 and wrong without one."""
    ranked = sorted(row["answers"], key=lambda each: (each["hybrid_distance"], each["passage"]))
    left = [each for each in ranked if not (without_gold and each["gold"])][:passages]
    if not left:
        return 0.0, False
    chosen = max(left, key=lambda each: each["score"])
    return chosen["confidence"], exact_match(chosen["text"], row["accepted"])


def calibration_error(confidence: Floats, right: NDArray[np.bool_]) -> float:
    """Mean absolute difference of confidence and share of right answers, 0 to 1, over `PARTS`
    parts with as many answers each.
    """
    parts = np.array_split(confidence.argsort(kind="stable"), PARTS)
    apart = [abs(confidence[own].mean() - right[own].mean()) * len(own) for own in parts]
    return float(sum(apart)) / len(confidence)


def curve(confidence: Floats, right: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Least confidence, precision and recall (of all right answers), surest answers first."""
    order = (-confidence).argsort(kind="stable")
    rights = right[order].cumsum()
    return confidence[order], rights / np.arange(1, len(order) + 1), rights / max(rights[-1], 1)


def least(
    confidence: Floats, right: NDArray[np.bool_], precision: float
) -> dict[str, float] | None:
    """The lowest confidence from which on answers have `precision`; None if nowhere."""
    thresholds, precisions, recalls = curve(confidence, right)
    able = np.flatnonzero(precisions >= precision)
    if not len(able):
        return None
    last = able[-1]
    return {
        "precision": precision,
        "confidence": round(float(thresholds[last]), 3),
        "recall": round(float(recalls[last]), 3),
        "answered": round(float(last + 1) / len(confidence), 3),
    }


def figures(pairs: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """What is printed of some answers."""
    confidence, right = np.array([c for c, _ in pairs]), np.array([r for _, r in pairs])
    return {
        "answers": len(pairs),
        "right": round(float(right.mean()), 3),
        "calibration_error": round(calibration_error(confidence, right), 4),
        "thresholds": [least(confidence, right, precision) for precision in PRECISIONS],
    }


def draw(pairs: dict[str, list[tuple[float, bool]]], path: Path) -> None:
    """Precision by recall, one line for each name of `pairs`."""
    import matplotlib as mpl  # noqa: PLC0415 (an extra)

    mpl.use("agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name, own in pairs.items():
        _, precisions, recalls = curve(np.array([c for c, _ in own]), np.array([r for _, r in own]))
        axes.plot(100 * recalls, 100 * precisions, label=name)
    axes.set(xlabel="right answers that are given, %", ylabel="given answers that are right, %")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=144)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replies", type=Path, action="append", required=True)
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    rows = [row for path in options.replies for row in read_whole_replies(path)]
    rows = [row for row in rows if not row["failed"]]
    as_is, without = ([best(row, options.passages, gone) for row in rows] for gone in (False, True))
    named = {"as it is": as_is, "gold passage taken out": without, "both": as_is + without}
    print(json.dumps({name: figures(pairs) for name, pairs in named.items()}, indent=1))
    if options.plot:
        draw(named, options.plot)


if __name__ == "__main__":
    main()
