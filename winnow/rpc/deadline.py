"""Converts deadlines from and to gRPC."""

from typing import Any

from winnow.deadline import MAX_SECONDS, Deadline

_ROUNDING = 0.01
_JITTER = 0.005


def deadline_of(context: Any, default: float) -> Deadline:
    """The caller's deadline, at most an hour from now; without one, `default` seconds from now."""
    left = context.time_remaining()
    return Deadline.after(min(default if left is None else float(left), MAX_SECONDS))


def timeout(deadline: Deadline) -> float:
    """The seconds left, for the argument `timeout` of a gRPC call; never negative."""
    return max(deadline.left(), 0.0)


def was_reached(left: float | None, initial: float | None) -> bool:
    """Whether a call that gRPC has just cancelled ran out of time; if not, its client cancelled it.

    A client cancels the call at its deadline, often a little before the deadline that the server
    knows: on the wire, deadlines are rounded up by at most one percent. `left` and `initial` are
    the seconds until the server's deadline, now and when the call began; None without a deadline.
    """
    return left is not None and initial is not None and left <= _ROUNDING * initial + _JITTER
