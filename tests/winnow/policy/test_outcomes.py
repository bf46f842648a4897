"""What a replica is blamed for."""

import pytest

from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    GenerationGoneError,
    IdentityError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.policy.outcomes import CallOutcome, outcome_of


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (UnavailableError("connection refused"), CallOutcome.FAILED),
        (IdentityError("another bundle"), CallOutcome.FAILED),
        (ArtefactError("damaged"), CallOutcome.FAILED),
        (WinnowError("a bug"), CallOutcome.FAILED),
        (OverloadedError("full"), CallOutcome.REFUSED),
        (GenerationGoneError("rows of an older generation"), CallOutcome.REFUSED),
        (InvalidRequestError(Violation("passages", "0 is too few")), CallOutcome.REFUSED),
    ],
)
@pytest.mark.parametrize("waited", [0.0, 9.0])
def test_errors_are_blamed_on_the_replica_and_refusals_are_not(
    error: WinnowError, outcome: CallOutcome, waited: float
) -> None:
    assert outcome_of(error, waited, silence=0.5) is outcome


@pytest.mark.parametrize("error", [None, DeadlineExceededError("late")])
@pytest.mark.parametrize(
    ("waited", "outcome"),
    [(0.0, CallOutcome.ABANDONED), (0.49, CallOutcome.ABANDONED), (0.5, CallOutcome.FAILED)],
)
def test_silence_is_blamed_only_if_it_was_long_enough(
    error: WinnowError | None, waited: float, outcome: CallOutcome
) -> None:
    """A client that allows five milliseconds must not get healthy replicas ejected."""
    assert outcome_of(error, waited, silence=0.5) is outcome
