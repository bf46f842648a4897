"""Which writes count: by version, else the last one."""

import pytest

from winnow.content_node.live.versions import Known, outcome_of_deletion, outcome_of_put
from winnow.domain.write import Outcome

S, U, O = Outcome.STORED, Outcome.UNCHANGED, Outcome.OUTDATED  # noqa: E741
THERE, GONE = 3, None
"""Rows: of a passage, and of one that was deleted."""


@pytest.mark.parametrize(
    ("stored", "version", "same", "outcome"),
    [
        (None, None, False, S),
        (None, 1, False, S),
        (Known(None, THERE), None, False, S),
        (Known(None, THERE), None, True, U),
        (Known(None, THERE), 1, True, S),  # its version is new
        (Known(5, THERE), None, False, S),  # without a version the last one counts
        (Known(5, THERE), None, True, U),
        (Known(5, THERE), 4, False, O),
        (Known(5, THERE), 4, True, O),
        (Known(5, THERE), 5, True, U),
        (Known(5, THERE), 5, False, S),
        (Known(5, THERE), 6, True, S),
        (Known(5, GONE), 4, False, O),  # it does not come back
        (Known(5, GONE), 5, False, S),
        (Known(5, GONE), 6, False, S),
        (Known(5, GONE), None, False, S),
        (Known(None, GONE), 1, False, S),
        (Known(0, THERE), 0, True, U),
    ],
)
def test_a_put_counts_unless_a_later_version_or_the_same_is_there(
    stored: Known | None, version: int | None, same: bool, outcome: Outcome
) -> None:
    assert outcome_of_put(stored, version, same) is outcome


@pytest.mark.parametrize(
    ("stored", "version", "outcome"),
    [
        (None, None, U),
        (None, 3, S),  # so that an older put does not bring it back
        (Known(None, THERE), None, S),
        (Known(None, THERE), 3, S),
        (Known(5, THERE), None, S),
        (Known(5, THERE), 4, O),
        (Known(5, THERE), 5, S),
        (Known(5, THERE), 6, S),
        (Known(5, GONE), None, U),
        (Known(5, GONE), 4, O),
        (Known(5, GONE), 5, U),
        (Known(5, GONE), 6, S),
        (Known(None, GONE), None, U),
        (Known(None, GONE), 1, S),
    ],
)
def test_a_deletion_counts_unless_a_later_version_is_there_or_nothing(
    stored: Known | None, version: int | None, outcome: Outcome
) -> None:
    assert outcome_of_deletion(stored, version) is outcome
