"""Entries as they arrive, with duplicates and gaps, to entries as they follow one another. Pure."""

from collections.abc import Iterable

from winnow.errors import UnavailableError
from winnow.journal.journal import JournalEntry


def following(after: int, arrived: Iterable[JournalEntry]) -> tuple[JournalEntry, ...]:
    """The entries after a place: what was delivered before is left out.

    Raises:
        UnavailableError: one is missing in between; it was lost on its way.

    """
    found: list[JournalEntry] = []
    for entry in arrived:
        if entry.place > after + 1:
            raise UnavailableError(
                f"entry {after + 1} of the journal did not arrive, and {entry.place} did"
            )
        if entry.place == after + 1:
            found.append(entry)
            after = entry.place
    return tuple(found)
