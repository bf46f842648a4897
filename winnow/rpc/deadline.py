"""Deadlines out of and into gRPC."""

from typing import Any

from winnow.deadline import LONGEST, Deadline

_ROUNDING = 0.01
_JITTER = 0.005


def of_context(context: Any, default: float) -> Deadline:
    """The caller's deadline, an hour at most; `default` seconds from now if there is none."""
    left = context.time_remaining()
    return Deadline.after(min(default if left is None else float(left), LONGEST))


def timeout(deadline: Deadline) -> float:
    """The seconds left, for `timeout=`; never negative."""
    return max(deadline.left(), 0.0)


def passed(left: float | None, given: float | None) -> bool:
    """Whether a call that gRPC has just cancelled had run out of time, or its client went away.

    A client that gives up at its deadline cancels the call, often a little before the deadline that
    the server knows: on the wire, deadlines are rounded up by a hundredth at most. `left` and
    `given` are the seconds until the server's deadline, now and when the call began; None without a
    deadline.
    """
    return left is not None and given is not None and left <= _ROUNDING * given + _JITTER
