"""Which requests that feed are valid. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from winnow.domain.write import Deletion, FedPassage, Put
from winnow.errors import Violation
from winnow.passages.canonical import canonical
from winnow.passages.validation import CUT, deletion_violations, passage_violations
from winnow.stateless.heads.validation import raise_if_any

MOST_PASSAGES = 100
"""Passages of a request."""
MOST_DELETIONS = 1_000
"""Deletions of a request."""
MOST_TOKENS = 14_000
"""Tokens of a text. Some characters become several tokens; a write has to fit a node's message."""
Fed = TypeVar("Fed", FedPassage, Deletion)


def validate_puts(passages: Sequence[FedPassage]) -> list[Put]:
    """The passages of a request in canonical form, in its order.

    Raises:
        InvalidRequestError: naming every field that breaks a rule.

    """
    _check("passages", passages, MOST_PASSAGES, passage_violations)
    return list(map(canonical, passages))


def validate_deletions(deletions: Sequence[Deletion]) -> list[Deletion]:
    """The deletions of a request, in its order; raises as `validate_puts`."""
    _check("deletions", deletions, MOST_DELETIONS, deletion_violations)
    return list(deletions)


def check_tokens(counts: Iterable[int]) -> None:
    """Raises InvalidRequestError, naming every text of a request that has too many tokens."""
    raise_if_any(
        [
            Violation(
                f"passages[{number}].text",
                f"has {tokens} tokens, at most {MOST_TOKENS} are allowed: {CUT}",
            )
            for number, tokens in enumerate(counts)
            if tokens > MOST_TOKENS
        ]
    )


def _check(
    field: str,
    fed: Sequence[Fed],
    most: int,
    violations: Callable[[Fed], Iterable[Violation]],
) -> None:
    found = list(_count(field, len(fed), most))
    if not found:
        for number, each in enumerate(fed):
            place = f"{field}[{number}]"
            found += [replace(one, field=f"{place}.{one.field}") for one in violations(each)]
    raise_if_any(found)


def _count(field: str, count: int, most: int) -> Iterator[Violation]:
    if not count:
        yield Violation(field, f"is empty: send 1 to {most}")
    elif count > most:
        yield Violation(field, f"has {count}, at most {most} are allowed: send several requests")
