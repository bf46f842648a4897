"""Decides whether the history of a register is linearisable. Pure.

The method is that of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the memo
of Lowe ("Testing for linearizability", 2017), which Porcupine uses, too: try every operation that
may come next, and remember which sets of operations have led to which value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class RegisterOperation:
    """A write to a register, or a read of it."""

    is_write: bool
    value: str
    """The value that was written or read; empty for none."""
    begun: float
    ended: float = inf
    """When it ended; infinite for a write whose outcome is unknown."""
    is_certain: bool = True
    """Whether it took effect. A write without a result may have had none."""


def is_linearisable(operations: Sequence[RegisterOperation], initial: str = "") -> bool:
    """Whether some order of the operations explains all values that were read.

    In the order, an operation comes before each one that began after it had ended.
    """
    everything = frozenset(range(len(operations)))
    certain = frozenset(n for n in everything if operations[n].is_certain)
    seen: set[tuple[frozenset[int], str]] = set()
    waiting: list[tuple[frozenset[int], str]] = [(everything, initial)]
    while waiting:
        remaining, value = waiting.pop()
        if not remaining & certain:
            return True
        if (remaining, value) in seen:
            continue
        seen.add((remaining, value))
        first_end = min(operations[n].ended for n in remaining)
        for number in sorted(remaining, reverse=True):
            operation = operations[number]
            if operation.begun > first_end:
                continue  # another one has ended before it began
            if operation.is_write:
                waiting.append((remaining - {number}, operation.value))
            elif operation.value == value:
                waiting.append((remaining - {number}, value))
            if not operation.is_certain:
                waiting.append((remaining - {number}, value))
    return False
