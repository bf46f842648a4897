"""What a replica is blamed for."""

import pytest

from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    GenerationGoneError,
    IdentityError,
    InvalidRequestError,
    NotServedError,
    OverloadedError,
    RestoringError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.replicas.policy.outcomes import ReplicaOutcome, outcome_of


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (UnavailableError("connection refused"), ReplicaOutcome.FAILED),
        (IdentityError("another bundle"), ReplicaOutcome.MISMATCHED),
        (ArtefactError("damaged"), ReplicaOutcome.FAILED),
        (WinnowError("a bug"), ReplicaOutcome.FAILED),
        (OverloadedError("full"), ReplicaOutcome.REFUSED),
        (GenerationGoneError("rows of an older generation"), ReplicaOutcome.REFUSED),
        (InvalidRequestError(Violation("passages", "0 is too few")), ReplicaOutcome.REFUSED),
        (NotServedError("of an older version"), ReplicaOutcome.REFUSED),
        (RestoringError("archived"), ReplicaOutcome.REFUSED),
    ],
)
@pytest.mark.parametrize("waited", [0.0, 9.0])
def test_errors_are_blamed_on_the_replica_and_refusals_are_not(
    error: WinnowError, outcome: ReplicaOutcome, waited: float
) -> None:
    assert outcome_of(error, waited, silence=0.5) is outcome


@pytest.mark.parametrize("error", [None, DeadlineExceededError("late")])
@pytest.mark.parametrize(
    ("waited", "outcome"),
    [
        (0.0, ReplicaOutcome.ABANDONED),
        (0.49, ReplicaOutcome.ABANDONED),
        (0.5, ReplicaOutcome.FAILED),
    ],
)
def test_silence_is_blamed_only_if_it_was_long_enough(
    error: WinnowError | None, waited: float, outcome: ReplicaOutcome
) -> None:
    """A client that allows five milliseconds must not get healthy replicas ejected."""
    assert outcome_of(error, waited, silence=0.5) is outcome
