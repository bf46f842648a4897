"""Which writes count: by version, else the last one."""

import pytest

from winnow.content_node.live.write_conflict import (
    StoredVersion,
    outcome_of_deletion,
    outcome_of_put,
)
from winnow.domain.write import Outcome

S, U, O = Outcome.STORED, Outcome.UNCHANGED, Outcome.OUTDATED  # noqa: E741
THERE, GONE = 3, None
"""Rows: of a passage, and of one that was deleted."""


@pytest.mark.parametrize(
    ("stored", "version", "same", "outcome"),
    [
        (None, None, False, S),
        (None, 1, False, S),
        (StoredVersion(None, THERE), None, False, S),
        (StoredVersion(None, THERE), None, True, U),
        (StoredVersion(None, THERE), 1, True, S),  # its version is new
        (StoredVersion(5, THERE), None, False, S),  # without a version the last one counts
        (StoredVersion(5, THERE), None, True, U),
        (StoredVersion(5, THERE), 4, False, O),
        (StoredVersion(5, THERE), 4, True, O),
        (StoredVersion(5, THERE), 5, True, U),
        (StoredVersion(5, THERE), 5, False, S),
        (StoredVersion(5, THERE), 6, True, S),
        (StoredVersion(5, GONE), 4, False, O),  # it does not come back
        (StoredVersion(5, GONE), 5, False, S),
        (StoredVersion(5, GONE), 6, False, S),
        (StoredVersion(5, GONE), None, False, S),
        (StoredVersion(None, GONE), 1, False, S),
        (StoredVersion(0, THERE), 0, True, U),
    ],
)
def test_a_put_counts_unless_a_later_version_or_the_same_is_there(
    stored: StoredVersion | None, version: int | None, same: bool, outcome: Outcome
) -> None:
    assert outcome_of_put(stored, version, same) is outcome


@pytest.mark.parametrize(
    ("stored", "version", "outcome"),
    [
        (None, None, U),
        (None, 3, S),  # so that an older put does not bring it back
        (StoredVersion(None, THERE), None, S),
        (StoredVersion(None, THERE), 3, S),
        (StoredVersion(5, THERE), None, S),
        (StoredVersion(5, THERE), 4, O),
        (StoredVersion(5, THERE), 5, S),
        (StoredVersion(5, THERE), 6, S),
        (StoredVersion(5, GONE), None, U),
        (StoredVersion(5, GONE), 4, O),
        (StoredVersion(5, GONE), 5, U),
        (StoredVersion(5, GONE), 6, S),
        (StoredVersion(None, GONE), None, U),
        (StoredVersion(None, GONE), 1, S),
    ],
)
def test_a_deletion_counts_unless_a_later_version_is_there_or_nothing(
    stored: StoredVersion | None, version: int | None, outcome: Outcome
) -> None:
    assert outcome_of_deletion(stored, version) is outcome
