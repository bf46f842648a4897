"""Whether a write changes what is stored under its id. Pure."""

from dataclasses import dataclass

from winnow.domain.write import Outcome


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """What is stored under an id: a passage, or that it was deleted at a version."""

    version: int | None
    """Of the write that stored it; None if that had none."""
    row: int | None
    """Of the passage in the newest view; None if there is none any more."""
    sequence: int = 0
    """Of that write; 0 if it was there when the index was built."""


def outcome_of_put(known: StoredVersion | None, version: int | None, same: bool) -> Outcome:
    """What becomes of a passage; `same` if it says what the stored one says."""
    if known is None:
        return Outcome.STORED
    if _later(known.version, version):
        return Outcome.OUTDATED
    # a version that is new is to be known, also of a passage that is not
    unchanged = same and version in (None, known.version)
    return Outcome.UNCHANGED if unchanged else Outcome.STORED


def outcome_of_deletion(known: StoredVersion | None, version: int | None) -> Outcome:
    """What becomes of a deletion. One with a version is stored also where nothing is there: an
    older put that comes late must not count.
    """
    if known is None:
        return Outcome.UNCHANGED if version is None else Outcome.STORED
    if _later(known.version, version):
        return Outcome.OUTDATED
    unchanged = known.row is None and version in (None, known.version)
    return Outcome.UNCHANGED if unchanged else Outcome.STORED


def _later(stored: int | None, version: int | None) -> bool:
    return stored is not None and version is not None and stored > version
