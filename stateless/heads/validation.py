"""Validates requests for predictions. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winnow.domain.prediction import PredictRequest
from winnow.errors import InvalidRequestError, Violation
from winnow.heads.manifest import validate_head_id
from winnow.quoting import briefly, many

MAX_CHARACTERS = 2_000
MAX_TEXTS = 16
MAX_HEADS = 32

_MAX_VIOLATIONS = 16
"""Maximum number of violations in an error, which is sent in headers of a few kilobytes."""


@dataclass(frozen=True, slots=True)
class ValidPredictRequest:
    """A request for predictions that has passed validation."""

    texts: tuple[str, ...]
    fields: tuple[str, ...]
    """The request field of each text, such as `text` or `texts[3]`."""
    head_ids: tuple[str, ...]
    group: str


def validate(request: PredictRequest) -> ValidPredictRequest:
    """Checks a request; returns its texts and the heads to apply.

    Raises:
        InvalidRequestError: a field breaks a rule; the error names every invalid field.

    """
    texts = request.texts or (request.text,)
    fields = tuple(f"texts[{n}]" for n in range(len(texts))) if request.texts else ("text",)
    violations = list(_text_violations(request, texts, fields))
    if not request.head_ids:
        violations.append(Violation("head_ids", "is empty: name 1 to 32 heads"))
    raise_if_any([*violations, *head_id_violations("head_ids", request.head_ids)])
    return ValidPredictRequest(texts, fields, request.head_ids, request.group)


def head_id_violations(field: str, ids: Sequence[str]) -> Iterator[Violation]:
    """Yields the violations of the head ids of a request."""
    if len(ids) > MAX_HEADS:
        yield Violation(field, f"has {len(ids)} heads, at most {MAX_HEADS} are allowed")
        return
    for number, each in enumerate(ids):
        name = f"{field}[{number}]"
        if not _is_head_id(each):
            yield Violation(
                name,
                f"{briefly(each)} is not a head id: 1 to 64 of a-z, 0-9, dot, dash, underscore",
            )
        elif each in ids[:number]:
            yield Violation(name, f"{briefly(each)} occurs twice: name each head once")


def no_word_violation(field: str) -> Violation:
    """Returns the violation of a text without any token."""
    return Violation(field, "has no word in it")


def raise_if_any(violations: Sequence[Violation]) -> None:
    """Raises InvalidRequestError with the first violations, if there are any."""
    more = len(violations) - _MAX_VIOLATIONS
    if more > 0:
        rest = Violation("request", f"has {many(more, 'more invalid field')}")
        raise InvalidRequestError(*violations[:_MAX_VIOLATIONS], rest)
    if violations:
        raise InvalidRequestError(*violations)


def _text_violations(
    request: PredictRequest, texts: Sequence[str], fields: Sequence[str]
) -> Iterator[Violation]:
    if request.text and request.texts:
        yield Violation("texts", "is set, and so is text: leave one of the two empty")
    if len(texts) > MAX_TEXTS:
        yield Violation("texts", f"has {len(texts)} texts, at most {MAX_TEXTS} are allowed")
        return
    for field, text in zip(fields, texts, strict=True):
        if not text.strip():
            yield Violation(field, "is empty: write something")
        elif len(text) > MAX_CHARACTERS:
            yield Violation(
                field, f"has {len(text)} characters, at most {MAX_CHARACTERS} are allowed"
            )


def _is_head_id(value: str) -> bool:
    try:
        validate_head_id(value)
    except ValueError:
        return False
    return True
