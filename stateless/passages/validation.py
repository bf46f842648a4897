"""Validates calls for passages. Pure."""

from collections.abc import Collection, Iterator, Sequence

from winnow.domain.listing import (
    DOCUMENT,
    DOCUMENT_HASH,
    DOCUMENT_PASSAGES,
    MAX_PAGE_PASSAGES,
)
from winnow.errors import InvalidRequestError, Violation
from winnow.filtering import parse
from winnow.stateless.answer.fields import unknown_fields

DEFAULT_PAGE_SIZE = 100
"""Number of passages or documents of a page if the caller sets none."""
MAX_IDS = 100
"""Maximum number of ids of a call."""
MAX_ID = 512
"""Maximum number of characters of an id. Earlier versions stored ids of more than 256."""
_ALWAYS_KNOWN = frozenset([DOCUMENT, DOCUMENT_HASH, DOCUMENT_PASSAGES])
"""Fields that filters may name although no passage has them: an index may have no documents."""


def checked_filter(where: str, fields: Collection[str] | None) -> str:
    """Returns the canonical text of a filter; empty for none.

    `fields` are the fields that the filter may name; None if they are not checked. Like every
    function here, raises InvalidRequestError if a rule is broken.
    """
    if not where:
        return ""
    parsed = parse(where)
    if fields is not None:
        _raise(*unknown_fields(parsed.names, _ALWAYS_KNOWN.union(fields)))
    return str(parsed)


def checked_page_size(size: int | None) -> int:
    """Returns the size of a page."""
    if size is None:
        return DEFAULT_PAGE_SIZE
    if not 1 <= size <= MAX_PAGE_PASSAGES:
        _raise(Violation("page_size", f"{size} is not between 1 and {MAX_PAGE_PASSAGES}"))
    return size


def check_ids(ids: Sequence[str]) -> None:
    """Refuses too many or no ids, and ids that no passage can have."""
    _raise(*_id_violations(ids))


def _id_violations(ids: Sequence[str]) -> Iterator[Violation]:
    if not 1 <= len(ids) <= MAX_IDS:
        yield Violation("ids", f"{len(ids)} is not between 1 and {MAX_IDS}")
        return
    for number, identifier in enumerate(ids):
        if not 1 <= len(identifier) <= MAX_ID:
            problem = f"has {len(identifier)} characters, 1 to {MAX_ID} are allowed"
            yield Violation(f"ids[{number}]", problem)


def _raise(*violations: Violation) -> None:
    if violations:
        raise InvalidRequestError(*violations)
