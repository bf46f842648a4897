"""Validates questions and settles their options. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from winnow.domain.question import (
    AnswerRequest,
    PartialResults,
    Question,
    ReadScope,
    Retriever,
    WaitPolicy,
)
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, Violation
from winnow.filtering import Filter, parse
from winnow.stateless.answer.fields import unknown_fields
from winnow.stateless.heads.validation import refuse, wrong_heads

MAX_CHARACTERS = 1_000
MAX_PASSAGES = 100
MAX_ANSWERS = 100
MAX_ANSWER_TOKENS = 64
MAX_LOSS = 100.0

_LIMITS = {
    "passages_to_read": MAX_PASSAGES,
    "answers": MAX_ANSWERS,
    "max_answer_tokens": MAX_ANSWER_TOKENS,
}
_SHARES = ("min_coverage", "min_wait_factor", "max_wait_factor")
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Options of questions that do not set them."""

    passages_to_read: int
    answers: int
    read_scope: ReadScope
    max_answer_tokens: int
    max_loss: float = 0.0
    """Default of questions that may stop early; the others read every passage."""
    retriever: Retriever = Retriever.HYBRID
    partial_results: PartialResults = PartialResults.ALLOW
    patience: WaitPolicy = field(default_factory=WaitPolicy)
    serves_heads: bool = False
    """Whether questions may name heads at all."""


def validate(
    request: AnswerRequest, defaults: Defaults, fields: Collection[str] | None = None
) -> Question:
    """The question with every option settled.

    `fields` are the fields that a filter may name; None if not all are known.

    Raises:
        InvalidRequestError: a field breaks a rule; every such field is named.

    """
    where, wrong_filter = _filter(request.where, fields)
    question = _settled(request, defaults, where)
    violations = [
        *_text(request.question),
        *_numbers(request),
        *_max_loss(request, question),
        *_patience(question.patience),
        *_heads(request.heads, defaults),
        *_positions(request.after),
        *wrong_filter,
    ]
    refuse(violations)
    return question


def _settled(request: AnswerRequest, defaults: Defaults, where: Filter | None) -> Question:
    scope = request.read_scope or defaults.read_scope
    retriever = request.retriever or defaults.retriever
    max_loss = 0.0 if _reads_all(scope, retriever) else defaults.max_loss
    return Question(
        text=request.question,
        passages_to_read=_or(request.passages_to_read, defaults.passages_to_read),
        answers=_or(request.answers, defaults.answers),
        read_scope=scope,
        retriever=retriever,
        max_answer_tokens=_or(request.max_answer_tokens, defaults.max_answer_tokens),
        max_loss=_or(request.max_loss, max_loss),
        partial_results=request.partial_results or defaults.partial_results,
        patience=WaitPolicy(
            *(_or(getattr(request, n), getattr(defaults.patience, n)) for n in _SHARES)
        ),
        heads=request.heads,
        where=str(where or ""),
        after=request.after,
    )


def _or(given: Number | None, default: Number) -> Number:
    return default if given is None else given


def _reads_all(scope: ReadScope, retriever: Retriever) -> str:
    """Why reading never stops early; empty if it may."""
    if retriever is not Retriever.HYBRID:
        return (
            f"retriever {retriever.value}, whose order of passages no rule was fitted for: ask for "
            "hybrid"
        )
    if scope is ReadScope.PER_SHARD:
        return "read_scope per-shard, where every shard reads in one round trip: ask for global"
    return ""


def _text(question: str) -> Iterator[Violation]:
    if not question.strip():
        yield Violation("question", "is empty: ask something")
    elif len(question) > MAX_CHARACTERS:
        yield Violation(
            "question", f"has {len(question)} characters, at most {MAX_CHARACTERS} are allowed"
        )


def _numbers(request: AnswerRequest) -> Iterator[Violation]:
    for name, most in _LIMITS.items():
        given = getattr(request, name)
        if given is not None and not 1 <= given <= most:
            yield Violation(name, f"{given} is not between 1 and {most}")


def _max_loss(request: AnswerRequest, question: Question) -> Iterator[Violation]:
    """A loss that was asked for is refused where it would be ignored; a default is not used."""
    why = _reads_all(question.read_scope, question.retriever)
    if not 0 <= question.max_loss <= MAX_LOSS:  # NaN too
        yield Violation("max_loss", f"{question.max_loss:g} is not between 0 and {MAX_LOSS:g}")
    elif request.max_loss and why:
        yield Violation(
            "max_loss", f"{request.max_loss:g} cannot be used with {why}, or leave max_loss out"
        )


def _patience(patience: WaitPolicy) -> Iterator[Violation]:
    for name in _SHARES:
        share = getattr(patience, name)
        if not 0 <= share <= 1:  # NaN too
            yield Violation(name, f"{share:g} is not between 0 and 1")
    least, most = patience.min_wait_factor, patience.max_wait_factor
    if least > most:
        yield Violation("min_wait_factor", f"{least:g} is more than max_wait_factor, {most:g}")


def _heads(ids: tuple[str, ...], defaults: Defaults) -> Iterator[Violation]:
    if ids and not defaults.serves_heads:
        yield Violation("heads", "cannot be applied: start the front with --heads STORE")
    else:
        yield from wrong_heads("heads", ids)


def _filter(
    text: str, fields: Collection[str] | None
) -> tuple[Filter | None, tuple[Violation, ...]]:
    """The filter, or what is wrong with it."""
    if not text:
        return None, ()
    try:
        where = parse(text)
    except InvalidRequestError as error:
        return None, error.violations
    return where, () if fields is None else tuple(unknown_fields(where.names, fields))


def _positions(after: Sequence[Position]) -> Iterator[Violation]:
    for shard, times in sorted(Counter(place.shard for place in after).items()):
        if times > 1:
            yield Violation("after", f"names shard {shard} {times} times: name its last write")


def check_shards(after: Iterable[Position], shards: int) -> None:
    """Raises InvalidRequestError if a write is of a shard that an index of `shards` lacks."""
    wrong = sorted(place.shard for place in after if place.shard >= shards)
    refuse(
        [Violation("after", f"shard {shard} is not one of 0 to {shards - 1}") for shard in wrong]
    )
