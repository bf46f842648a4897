"""The outcome of a request to a replica, which says whether the replica is to blame.

This module knows errors and durations. It knows neither replicas nor calls.
"""

from enum import Enum

from winnow.errors import (
    DeadlineExceededError,
    GenerationGoneError,
    IdentityError,
    InvalidRequestError,
    NotServedError,
    OverloadedError,
    RestoringError,
    WinnowError,
)

_REFUSALS = (
    OverloadedError,
    InvalidRequestError,
    GenerationGoneError,
    NotServedError,
    RestoringError,
)


class ReplicaOutcome(Enum):
    """How a request to a replica ended."""

    ANSWERED = "answered"
    """The replica returned a result."""
    OUTLIER = "outlier"
    """The replica returned a result, but is far slower than the others: it is ejected."""
    REFUSED = "refused"
    """The replica refused the request: it is overloaded, found the request invalid, no longer holds
    the generation, is of a version that lacks the call, or restores the shard. It is alive.
    """
    FAILED = "failed"
    """The replica is unreachable or broken, or it was silent for too long."""
    MISMATCHED = "mismatched"
    """The replica raised an `IdentityError`: it has another model than the caller expects."""
    BEATEN = "beaten"
    """The request was cancelled because a later attempt on another replica answered first."""
    ABANDONED = "abandoned"
    """The request was given up for a reason that says nothing about the replica."""


def outcome_of(error: WinnowError | None, elapsed: float, silence: float) -> ReplicaOutcome:
    """The outcome of a request that got no result and was not beaten.

    Args:
        error: the error of the request; None if it was cancelled.
        elapsed: seconds since the request was sent.
        silence: seconds that a replica may be silent. A request given up sooner does not count
            against the replica: callers with short deadlines must not get replicas ejected.

    """
    if isinstance(error, _REFUSALS):
        return ReplicaOutcome.REFUSED
    if error is None or isinstance(error, DeadlineExceededError):
        return ReplicaOutcome.FAILED if elapsed >= silence else ReplicaOutcome.ABANDONED
    if isinstance(error, IdentityError):
        return ReplicaOutcome.MISMATCHED
    return ReplicaOutcome.FAILED
