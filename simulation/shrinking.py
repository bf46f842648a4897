"""Shortens a plan that fails to few steps. Pure: the caller runs the plans.

Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002):
leave out ever smaller parts, as long as the rest still fails.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def shrink(
    items: Sequence[Item], fails: Callable[[Sequence[Item]], bool], max_runs: int = 200
) -> list[Item]:
    """Returns a part of `items` that still fails; in their order.

    `fails` is called at most `max_runs` times. `items` itself must fail.
    """
    kept, runs = list(items), 0
    size = max(len(kept) // 2, 1)
    while kept:
        removed = False
        start = 0
        while start < len(kept):
            if runs == max_runs:
                return kept
            shorter = kept[:start] + kept[start + size :]
            runs += 1
            if fails(shorter):
                kept, removed = shorter, True
            else:
                start += size
        if size == 1 and not removed:
            break
        size = max(size // 2, 1) if not removed or size > 1 else 1
    return kept
