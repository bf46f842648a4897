"""Which passages may be stored, and which deletions are valid. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from winnow.domain.passage import Passage
from winnow.domain.write import Deletion, FedPassage, Put
from winnow.errors import Violation
from winnow.passages.canonical import metadata_text
from winnow.passages.checks import CUT
from winnow.passages.feeding import wrong_deletion, wrong_passage
from winnow.stateless.heads.validation import refuse

MOST_PASSAGES = 100
"""Of a request."""
MOST_DELETIONS = 1_000
"""Of a request."""
MOST_TOKENS = 14_000
"""Of a text. Some characters become several tokens; a write has to fit a message of a node."""


def validate_puts(passages: Sequence[FedPassage]) -> list[Put]:
    """The passages of a request, in its order. Of several with one id the last one counts.

    Raises:
        InvalidRequestError: naming every field that breaks a rule.

    """
    violations = list(_count("passages", len(passages), MOST_PASSAGES))
    if not violations:
        for number, each in enumerate(passages):
            violations += _at(f"passages[{number}]", wrong_passage(each))
    refuse(violations)
    return [
        Put(Passage(each.id, each.title, each.text, metadata_text(each.metadata)), each.version)
        for each in passages
    ]


def validate_deletions(deletions: Sequence[Deletion]) -> list[Deletion]:
    """The deletions of a request, in its order.

    Raises:
        InvalidRequestError: naming every field that breaks a rule.

    """
    violations = list(_count("deletions", len(deletions), MOST_DELETIONS))
    if not violations:
        for number, each in enumerate(deletions):
            violations += _at(f"deletions[{number}]", wrong_deletion(each))
    refuse(violations)
    return list(deletions)


def too_many_tokens(number: int, tokens: int) -> Violation:
    """What is wrong with a text that is short in characters only."""
    return Violation(
        f"passages[{number}].text",
        f"has {tokens} tokens, at most {MOST_TOKENS} are allowed: {CUT}",
    )


def _count(field: str, count: int, most: int) -> Iterator[Violation]:
    if not count:
        yield Violation(field, f"is empty: send 1 to {most}")
    elif count > most:
        yield Violation(field, f"has {count}, at most {most} are allowed: send several requests")


def _at(place: str, wrong: Iterable[Violation]) -> Iterator[Violation]:
    for each in wrong:
        yield replace(each, field=f"{place}.{each.field}")
