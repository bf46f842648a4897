"""Validates feeding requests. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from winnow.domain.write import Deletion, FedPassage, Put
from winnow.errors import Violation
from winnow.passages.canonical import canonical
from winnow.passages.validation import CUT, deletion_violations, passage_violations
from winnow.stateless.heads.validation import raise_if_any

MAX_PASSAGES = 100
"""Maximum number of passages in a request."""
MAX_DELETIONS = 1_000
"""Maximum number of deletions in a request."""
MAX_TOKENS = 14_000
"""Maximum number of tokens of a text, so that its write fits into a message.

The number of characters does not limit tokens enough: a character may become several tokens.
"""
Fed = TypeVar("Fed", FedPassage, Deletion)


def validate_puts(passages: Sequence[FedPassage]) -> list[Put]:
    """Converts the passages of a request to canonical puts, in their order.

    Raises:
        InvalidRequestError: a field breaks a rule; the error names every invalid field.

    """
    _check_items("passages", passages, MAX_PASSAGES, passage_violations)
    return list(map(canonical, passages))


def validate_deletions(deletions: Sequence[Deletion]) -> list[Deletion]:
    """Validates the deletions of a request. The errors are those of `validate_puts`."""
    _check_items("deletions", deletions, MAX_DELETIONS, deletion_violations)
    return list(deletions)


def check_tokens(counts: Iterable[int]) -> None:
    """Raises InvalidRequestError that names every text with too many tokens."""
    raise_if_any(
        [
            Violation(
                f"passages[{number}].text",
                f"has {tokens} tokens, at most {MAX_TOKENS} are allowed: {CUT}",
            )
            for number, tokens in enumerate(counts)
            if tokens > MAX_TOKENS
        ]
    )


def _check_items(
    field: str,
    items: Sequence[Fed],
    max_items: int,
    violations_of: Callable[[Fed], Iterable[Violation]],
) -> None:
    if not items:
        raise_if_any([Violation(field, f"is empty: send 1 to {max_items}")])
    if len(items) > max_items:
        problem = f"has {len(items)} items, at most {max_items} are allowed: send several requests"
        raise_if_any([Violation(field, problem)])
    raise_if_any(
        [
            replace(violation, field=f"{field}[{index}].{violation.field}")
            for index, item in enumerate(items)
            for violation in violations_of(item)
        ]
    )
