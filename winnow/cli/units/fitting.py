"""Fits the costs of a front node: for a question, for its shards and for its reads. Pure."""

from collections.abc import Mapping

import numpy as np

from winnow.sizing.units import FrontUnits


def fitted(one_read: Mapping[int, float], read_ms: float) -> FrontUnits:
    """The costs of a front node.

    Args:
        one_read: milliseconds of its event loop for a question that reads one passage, by number of
            shards; at least three numbers.
        read_ms: cost of each shard that reads.

    """
    shards = np.array(sorted(one_read), np.float64)
    spent = np.array([one_read[int(number)] for number in shards]) - read_ms
    columns = [np.ones_like(shards), shards, shards * shards]
    found = _least_squares(columns, spent)
    return FrontUnits(
        question_ms=round(found[0], 4),
        shard_ms=round(found[1], 4),
        pair_us=round(1e3 * found[2], 4),
        read_ms=round(read_ms, 4),
    )


def _least_squares(columns: list[np.ndarray], spent: np.ndarray) -> list[float]:
    """Non-negative least squares of relative errors, so that few shards matter as much as many."""
    used = list(range(len(columns)))
    while True:
        matrix = np.stack([columns[place] / spent for place in used], axis=1)
        found = np.linalg.lstsq(matrix, np.ones_like(spent), rcond=None)[0]
        if (found >= 0).all() or len(used) == 1:
            values = dict(zip(used, np.maximum(found, 0.0).tolist(), strict=True))
            return [values.get(place, 0.0) for place in range(len(columns))]
        del used[int(np.argmin(found))]
