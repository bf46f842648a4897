"""Which requests for predictions are valid. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winnow.domain.prediction import PredictRequest
from winnow.errors import InvalidRequestError, Violation
from winnow.heads.manifest import validate_head_id
from winnow.quoting import briefly, many

MAX_CHARACTERS = 2_000
MAX_TEXTS = 16
MAX_HEADS = 32

_MOST_NAMED = 16
"""Violations that are named: a status travels in headers, which hold a few kilobytes."""


@dataclass(frozen=True, slots=True)
class ValidPredictRequest:
    """A valid request for predictions."""

    texts: tuple[str, ...]
    fields: tuple[str, ...]
    """What the request calls each text: `text`, or `texts[3]`."""
    head_ids: tuple[str, ...]
    group: str


def validate(request: PredictRequest) -> ValidPredictRequest:
    """The texts of a request, and the heads to apply to them.

    Raises:
        InvalidRequestError: naming every field that breaks a rule.

    """
    texts = request.texts or (request.text,)
    fields = tuple(f"texts[{n}]" for n in range(len(texts))) if request.texts else ("text",)
    named = list(_texts(request, texts, fields))
    if not request.head_ids:
        named.append(Violation("head_ids", "is empty: name 1 to 32 heads"))
    refuse([*named, *wrong_heads("head_ids", request.head_ids)])
    return ValidPredictRequest(texts, fields, request.head_ids, request.group)


def wrong_heads(field: str, ids: Sequence[str]) -> Iterator[Violation]:
    """The rules that the ids of a request's heads break."""
    if len(ids) > MAX_HEADS:
        yield Violation(field, f"has {len(ids)} heads, at most {MAX_HEADS} are allowed")
        return
    for number, each in enumerate(ids):
        place = f"{field}[{number}]"
        if not _is_head_id(each):
            yield Violation(
                place, f"{briefly(each)} is no head id: 1 to 64 of a-z, 0-9, dot, dash, underscore"
            )
        elif each in ids[:number]:
            yield Violation(place, f"{briefly(each)} is there twice: name each head once")


def wordless(field: str) -> Violation:
    """What is wrong with a text of which no token is left."""
    return Violation(field, "has no word in it")


def refuse(violations: Sequence[Violation]) -> None:
    """Raises InvalidRequestError if there are any; names the first of very many."""
    more = len(violations) - _MOST_NAMED
    if more > 0:
        rest = Violation("request", f"has {many(more, 'more field')} with a broken rule")
        raise InvalidRequestError(*violations[:_MOST_NAMED], rest)
    if violations:
        raise InvalidRequestError(*violations)


def _texts(
    request: PredictRequest, texts: Sequence[str], fields: Sequence[str]
) -> Iterator[Violation]:
    if request.text and request.texts:
        yield Violation("texts", "is given beside text: leave one of them empty")
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
