"""How a request to a replica ended, and whether the replica is to blame.

Knows errors and seconds; knows neither replicas nor calls.
"""

from enum import Enum

from winnow.errors import (
    DeadlineExceededError,
    GenerationGoneError,
    IdentityError,
    InvalidRequestError,
    OverloadedError,
    WinnowError,
)

_REFUSALS = (OverloadedError, InvalidRequestError, GenerationGoneError)


class ReplicaOutcome(Enum):
    """How a request to a replica ended."""

    ANSWERED = "answered"
    """With a result."""
    OUTLIER = "outlier"
    """With a result, but so much slower than other replicas that it is ejected at once."""
    REFUSED = "refused"
    """With a refusal: it is overloaded, or has moved on to other rows. It is alive."""
    FAILED = "failed"
    """Unreachable, broken, or silent for longer than any request should take."""
    MISMATCHED = "mismatched"
    """With an `IdentityError`: it has another model than the caller expects."""
    BEATEN = "beaten"
    """Cancelled because the same request, sent elsewhere later, was answered first."""
    ABANDONED = "abandoned"
    """Given up for a reason that says nothing about the replica."""


def outcome_of(error: WinnowError | None, waited: float, silence: float) -> ReplicaOutcome:
    """The outcome of a request that got no result and was not beaten.

    Args:
        error: what it ended with; None where it was cancelled.
        waited: seconds since it was sent.
        silence: seconds that a replica may be silent. A request given up sooner says nothing
            about it: the caller had no time, and must not get a replica ejected for that.

    """
    if isinstance(error, _REFUSALS):
        return ReplicaOutcome.REFUSED
    if error is None or isinstance(error, DeadlineExceededError):
        return ReplicaOutcome.FAILED if waited >= silence else ReplicaOutcome.ABANDONED
    if isinstance(error, IdentityError):
        return ReplicaOutcome.MISMATCHED
    return ReplicaOutcome.FAILED
