"""Deadlines out of and into gRPC."""

from typing import Any

from winnow.deadline import Deadline


def of_context(context: Any, default: float) -> Deadline:
    """The caller's deadline, or `default` seconds from now if it set none."""
    left = context.time_remaining()
    return Deadline.after(default if left is None else float(left))


def timeout(deadline: Deadline) -> float:
    """What to pass as `timeout=`: the seconds left, never negative."""
    return max(deadline.left(), 0.0)
