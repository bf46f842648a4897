"""Validates calls for passages. Pure."""

from collections.abc import Collection, Iterator, Sequence

from winnow.domain.listing import (
    DOCUMENT,
    DOCUMENT_HASH,
    DOCUMENT_PASSAGES,
    MAX_PAGE_PASSAGES,
)
from winnow.errors import Violation
from winnow.filtering import parse
from winnow.stateless.answer.fields import unknown_fields
from winnow.stateless.answer.validation import count_violations
from winnow.stateless.heads.validation import raise_if_any

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
        raise_if_any(list(unknown_fields(parsed.names, _ALWAYS_KNOWN.union(fields))))
    return str(parsed)


def checked_page_size(size: int | None) -> int:
    """Returns the size of a page."""
    if size is None:
        return DEFAULT_PAGE_SIZE
    raise_if_any(list(count_violations("page_size", size, MAX_PAGE_PASSAGES)))
    return size


def check_ids(ids: Sequence[str]) -> None:
    """Refuses too many or no ids, and ids that no passage can have."""
    raise_if_any(list(_id_violations(ids)))


def _id_violations(ids: Sequence[str]) -> Iterator[Violation]:
    yield from count_violations("ids", len(ids), MAX_IDS)
    for number, identifier in enumerate(ids[:MAX_IDS]):
        if not 1 <= len(identifier) <= MAX_ID:
            problem = f"has {len(identifier)} characters, 1 to {MAX_ID} are allowed"
            yield Violation(f"ids[{number}]", problem)
