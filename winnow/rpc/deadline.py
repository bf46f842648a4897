"""Converts deadlines between gRPC and `winnow.deadline`."""

from typing import Any

from winnow.deadline import MAX_SECONDS, Deadline

_ROUNDING = 0.01
_JITTER = 0.005


def deadline_of(context: Any, default: float) -> Deadline:
    """The deadline of a call, at most an hour from now; by default `default` seconds from now."""
    left = context.time_remaining()
    return Deadline.after(min(default if left is None else float(left), MAX_SECONDS))


def unexpired_deadline_of(context: Any, default: float) -> Deadline:
    """As `deadline_of`; raises DeadlineExceededError if the deadline has already passed."""
    deadline = deadline_of(context, default)
    deadline.check("the call began")
    return deadline


def timeout(deadline: Deadline) -> float:
    """The remaining seconds, as the `timeout` argument of a gRPC call; never negative."""
    return max(deadline.left(), 0.0)


def was_reached(left: float | None, initial: float | None) -> bool:
    """Whether gRPC cancelled a call because of its deadline, and not because the client did.

    Clients cancel a call at its deadline. This is often slightly before the server's deadline,
    because deadlines on the wire are rounded up by at most one percent. `left` and `initial` are
    the seconds until the server's deadline, now and when the call began; None without a deadline.
    """
    return left is not None and initial is not None and left <= _ROUNDING * initial + _JITTER
