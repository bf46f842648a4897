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
from winnow.policy.outcomes import Outcome, outcome_of


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (UnavailableError("connection refused"), Outcome.FAILED),
        (IdentityError("another bundle"), Outcome.FAILED),
        (ArtefactError("damaged"), Outcome.FAILED),
        (WinnowError("a bug"), Outcome.FAILED),
        (OverloadedError("full"), Outcome.REFUSED),
        (GenerationGoneError("rows of an older generation"), Outcome.REFUSED),
        (InvalidRequestError(Violation("passages", "0 is too few")), Outcome.REFUSED),
    ],
)
@pytest.mark.parametrize("waited", [0.0, 9.0])
def test_errors_are_blamed_on_the_replica_and_refusals_are_not(
    error: WinnowError, outcome: Outcome, waited: float
) -> None:
    assert outcome_of(error, waited, silence=0.5) is outcome


@pytest.mark.parametrize("error", [None, DeadlineExceededError("late")])
@pytest.mark.parametrize(
    ("waited", "outcome"),
    [(0.0, Outcome.ABANDONED), (0.49, Outcome.ABANDONED), (0.5, Outcome.FAILED)],
)
def test_silence_is_blamed_only_if_it_was_long_enough(
    error: WinnowError | None, waited: float, outcome: Outcome
) -> None:
    """A client that allows five milliseconds must not get healthy replicas ejected."""
    assert outcome_of(error, waited, silence=0.5) is outcome
