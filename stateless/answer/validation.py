"""Validates requests for answers, and fills in the options that they do not set. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from winnow.domain.answer_size import AnswerSize
from winnow.domain.partition import Partition
from winnow.domain.question import (
    AnswerRequest,
    PartialResults,
    Question,
    ReadScope,
    Retriever,
    WaitPolicy,
)
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, Violation, invalid_field
from winnow.filtering import Filter, parse
from winnow.quoting import shortened
from winnow.stateless.answer.fields import unknown_fields
from winnow.stateless.heads.validation import head_id_violations, raise_if_any
from winnow.text.surroundings import asks_for_several

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
_WAIT_FRACTIONS = ("min_coverage", "min_wait_factor", "max_wait_factor")
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionDefaults:
    """The values of options that a request does not set."""

    passages_to_read: int
    answers: int
    read_scope: ReadScope
    max_answer_tokens: int
    max_loss: float = 0.0
    """The accuracy budget of questions that may stop early. Other questions read every passage."""
    retriever: Retriever = Retriever.HYBRID
    partial_results: PartialResults = PartialResults.ALLOW
    patience: WaitPolicy = field(default_factory=WaitPolicy)
    serves_heads: bool = False
    """Whether questions may name heads."""
    answer_size: AnswerSize = AnswerSize.AUTO
    min_confidence: float | None = None
    has_confidence: bool = True
    """Whether answers have a confidence, so that questions may set a minimum."""


def validate(
    request: AnswerRequest, defaults: QuestionDefaults, fields: Collection[str] | None = None
) -> Question:
    """Converts a request to a question with a value for every option.

    `fields` are the fields that a filter may name; None if they are not checked.

    Raises:
        InvalidRequestError: a field breaks a rule; the error names every invalid field.

    """
    where, filter_violations = _parse_filter(request.where, fields)
    question = _with_defaults(request, defaults, where)
    violations = [
        *question_violations(request.question),
        *chain.from_iterable(
            count_violations(name, getattr(request, name), limit) for name, limit in _LIMITS.items()
        ),
        *_max_loss_violations(request, question),
        *_wait_violations(question.patience),
        *min_confidence_violations(request.min_confidence, defaults.has_confidence),
        *_head_violations(request.heads, defaults),
        *position_violations(request.after),
        *filter_violations,
    ]
    raise_if_any(violations)
    return question


def _with_defaults(
    request: AnswerRequest, defaults: QuestionDefaults, where: Filter | None
) -> Question:
    scope = request.read_scope or defaults.read_scope
    retriever = request.retriever or defaults.retriever
    max_loss = 0.0 if _reason_to_read_all(scope, retriever) else defaults.max_loss
    return Question(
        text=request.question,
        passages_to_read=_value_or(request.passages_to_read, defaults.passages_to_read),
        answers=_value_or(request.answers, defaults.answers),
        read_scope=scope,
        retriever=retriever,
        max_answer_tokens=_value_or(request.max_answer_tokens, defaults.max_answer_tokens),
        max_loss=_value_or(request.max_loss, max_loss),
        partial_results=request.partial_results or defaults.partial_results,
        patience=WaitPolicy(
            *(
                _value_or(getattr(request, n), getattr(defaults.patience, n))
                for n in _WAIT_FRACTIONS
            )
        ),
        heads=request.heads,
        where=str(where or ""),
        after=request.after,
        answer_size=request.answer_size or defaults.answer_size,
        asks_for_several=asks_for_several(request.question),
        min_confidence=(
            defaults.min_confidence if request.min_confidence is None else request.min_confidence
        ),
        tenant=request.tenant,
    )


def _value_or(value: Number | None, default: Number) -> Number:
    return default if value is None else value


def _reason_to_read_all(scope: ReadScope, retriever: Retriever) -> str:
    """The reason why a question cannot stop early; empty if it can."""
    if retriever is not Retriever.HYBRID:
        return f"retriever {retriever.value}, which has no rule of early stopping: use hybrid"
    if scope is ReadScope.PER_SHARD:
        return "read scope per-shard, where every shard reads in one round trip: use global"
    return ""


def question_violations(question: str) -> Iterator[Violation]:
    """Yields the violations of the text of a question."""
    if not question.strip():
        yield Violation("question", "is empty: write a question")
    elif len(question) > MAX_CHARACTERS:
        yield Violation(
            "question", f"has {len(question)} characters, at most {MAX_CHARACTERS} are allowed"
        )


def count_violations(field: str, value: int | None, limit: int) -> Iterator[Violation]:
    """Yields a violation unless a number is 1 to `limit`, or None."""
    if value is not None and not 1 <= value <= limit:
        yield Violation(field, f"{value} is not between 1 and {limit}")


def _max_loss_violations(request: AnswerRequest, question: Question) -> Iterator[Violation]:
    """Refuses a requested `max_loss` that would have no effect. The default may have no effect."""
    reason = _reason_to_read_all(question.read_scope, question.retriever)
    if not 0 <= question.max_loss <= MAX_LOSS:  # NaN too
        yield Violation("max_loss", f"{question.max_loss:g} is not between 0 and {MAX_LOSS:g}")
    elif request.max_loss and reason:
        yield Violation(
            "max_loss", f"{request.max_loss:g} has no effect with {reason}, or leave it out"
        )


def _wait_violations(policy: WaitPolicy) -> Iterator[Violation]:
    for name in _WAIT_FRACTIONS:
        fraction = getattr(policy, name)
        if not 0 <= fraction <= 1:  # NaN too
            yield Violation(name, f"{fraction:g} is not between 0 and 1")
    low, high = policy.min_wait_factor, policy.max_wait_factor
    if low > high:
        yield Violation("min_wait_factor", f"{low:g} is more than the maximum factor, {high:g}")


def min_confidence_violations(value: float | None, has_confidence: bool) -> Iterator[Violation]:
    """Yields what is invalid about the minimum confidence of a request; None if it sets none.

    `has_confidence`: whether the bundle has a calibrated confidence.
    """
    if value is None:
        return
    if not 0 <= value <= 1:  # NaN too
        yield Violation("min_confidence", f"{value:g} is not between 0 and 1")
    elif not has_confidence:
        yield Violation(
            "min_confidence", "needs a bundle with a calibrated confidence: leave it out"
        )


def _head_violations(ids: tuple[str, ...], defaults: QuestionDefaults) -> Iterator[Violation]:
    if ids and not defaults.serves_heads:
        yield Violation("heads", "cannot be applied: start the front with --heads STORE")
    else:
        yield from head_id_violations("heads", ids)


def _parse_filter(
    text: str, fields: Collection[str] | None
) -> tuple[Filter | None, tuple[Violation, ...]]:
    """Parses the filter of a request; returns the filter and its violations."""
    if not text:
        return None, ()
    try:
        where = parse(text)
    except InvalidRequestError as error:
        return None, error.violations
    return where, () if fields is None else tuple(unknown_fields(where.names, fields))


def position_violations(after: Sequence[Position]) -> Iterator[Violation]:
    """Yields a violation for each shard that is named more than once."""
    for shard, count in sorted(Counter(write.shard for write in after).items()):
        if count > 1:
            yield Violation("after", f"names shard {shard} {count} times: name its last write")


def knows_shards(after: Sequence[Position], partition: Partition) -> bool:
    """Whether `partition` has the shards of all writes.

    It lacks the half of a shard if it does not know yet that the shard was split.
    """
    return not any(
        part < write.shard for write in after for part in partition.parts_of(write.shard)
    )


def check_index_of_positions(after: Sequence[Position], index: str) -> None:
    """Raises InvalidRequestError if a write is of another index than the request.

    Shards and logs of two indexes have the same numbers. `index` is the name of the index of the
    request; empty if the front serves a single index.
    """
    for write in after:
        if write.index not in ("", index):
            served = f"for index {index}" if index else "for an index without a name"
            raise invalid_field(
                "after",
                f"the position is of index {shortened(write.index)}, but the request is {served}: "
                "leave it out",
            )


def current_positions(after: Sequence[Position], partition: Partition) -> tuple[Position, ...]:
    """Converts positions in the logs of split shards to positions in the logs of their parts.

    The parts of a split shard have its writes under the same numbers. If `partition` does not know
    of the split yet, the position stays in the log of the old shard.

    Raises InvalidRequestError if the index never had the shard of a write.
    """
    sequences: dict[int, int] = {}
    unknown = []
    for write in after:
        parts = partition.parts_of(write.shard)
        if not parts:
            unknown.append(write.shard)
        for part in parts:
            sequences[part] = max(write.sequence, sequences.get(part, 0))
    last = partition.built - 1
    raise_if_any(
        [
            Violation("after", f"shard {shard} is not one of 0 to {last}")
            for shard in sorted(unknown)
        ]
    )
    return tuple(Position(*each) for each in sequences.items())
