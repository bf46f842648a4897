"""Entries that arrive twice or not at all."""

import pytest

from winnow.errors import UnavailableError
from winnow.journal.journal import JournalEntry
from winnow.journal.pulling import new_entries


def entries(*places: int) -> list[JournalEntry]:
    return [JournalEntry(place, "", b"") for place in places]


@pytest.mark.parametrize(
    ("after", "arrived", "expected"),
    [
        (0, (), ()),
        (0, (1, 2, 3), (1, 2, 3)),
        (2, (1, 2, 3), (3,)),
        (0, (1, 1, 2, 1, 2, 3), (1, 2, 3)),
        (7, (6, 7), ()),
    ],
)
def test_what_was_delivered_before_is_left_out(
    after: int, arrived: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert new_entries(after, entries(*arrived)) == tuple(entries(*expected))


@pytest.mark.parametrize(("after", "arrived"), [(0, (2,)), (1, (2, 4)), (5, (4, 7))])
def test_a_gap_is_told(after: int, arrived: tuple[int, ...]) -> None:
    with pytest.raises(UnavailableError, match=f"sent entry {arrived[-1]} without"):
        new_entries(after, entries(*arrived))
