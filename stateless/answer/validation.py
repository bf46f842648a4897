"""Which questions are valid, and with what options they are asked. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from winnow.convert import answer as convert
from winnow.domain.question import PartialResults, Patience, Question, ReadScope, Retriever
from winnow.errors import InvalidRequestError, Violation
from winnow.v1 import answer_pb2

MAX_CHARACTERS = 1_000
MAX_PASSAGES = 100
MAX_ANSWERS = 100
MAX_ANSWER_TOKENS = 64
MAX_LOSS = 100.0
_SHARES: tuple[Literal["min_coverage", "min_wait_factor", "max_wait_factor"], ...] = (
    "min_coverage",
    "min_wait_factor",
    "max_wait_factor",
)
_DIGITS = 6

_LIMITS: tuple[tuple[Literal["passages_to_read", "answers", "max_answer_tokens"], int], ...] = (
    ("passages_to_read", MAX_PASSAGES),
    ("answers", MAX_ANSWERS),
    ("max_answer_tokens", MAX_ANSWER_TOKENS),
)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds where a question does not say."""

    passages_to_read: int
    answers: int
    read_scope: ReadScope
    max_answer_tokens: int
    max_loss: float = 0.0
    retriever: Retriever = Retriever.HYBRID
    partial_results: PartialResults = PartialResults.ALLOW
    patience: Patience = field(default_factory=Patience)


def validate(request: answer_pb2.AnswerRequest, defaults: Defaults) -> Question:
    """The question with every option settled.

    Raises:
        InvalidRequestError: naming every field that breaks a rule.

    """
    violations = [*_text(request.question)]
    chosen = {}
    for name, most in _LIMITS:
        given = getattr(request, name) if request.HasField(name) else None
        chosen[name] = getattr(defaults, name) if given is None else int(given)
        if given is not None and not 1 <= given <= most:
            violations.append(Violation(name, f"{given} is not between 1 and {most}"))
    max_loss = request.max_loss if request.HasField("max_loss") else defaults.max_loss
    if not 0 <= max_loss <= MAX_LOSS:  # NaN too
        violations.append(Violation("max_loss", f"{max_loss} is not between 0 and {MAX_LOSS:g}"))
    scope = _choice(convert.read_scope, request.read_scope, violations)
    retriever = _choice(convert.retriever, request.retriever, violations)
    partial = _choice(convert.partial_results, request.partial_results, violations)
    patience = _patience(request, defaults.patience, violations)
    if violations:
        raise InvalidRequestError(*violations)
    return Question(
        request.question,
        chosen["passages_to_read"],
        chosen["answers"],
        scope or defaults.read_scope,
        retriever or defaults.retriever,
        chosen["max_answer_tokens"],
        max_loss,
        partial or defaults.partial_results,
        patience,
    )


def _text(question: str) -> Iterator[Violation]:
    if not question.strip():
        yield Violation("question", "is empty: ask something")
    elif len(question) > MAX_CHARACTERS:
        yield Violation(
            "question", f"has {len(question)} characters, at most {MAX_CHARACTERS} are read"
        )


def _patience(
    request: answer_pb2.AnswerRequest, defaults: Patience, violations: list[Violation]
) -> Patience:
    shares = {}
    for name in _SHARES:
        # single precision on the wire: 0.55 of 20 shards must not become 12
        given = round(getattr(request, name), _DIGITS) if request.HasField(name) else None
        shares[name] = getattr(defaults, name) if given is None else given
        if not 0 <= shares[name] <= 1:  # NaN too
            violations.append(Violation(name, f"{given} is not between 0 and 1"))
    least, most = shares["min_wait_factor"], shares["max_wait_factor"]
    if least > most:
        violations.append(
            Violation("min_wait_factor", f"{least:g} is more than max_wait_factor, {most:g}")
        )
    return Patience(**shares)


Choice = TypeVar("Choice")


def _choice(
    read: Callable[[int], Choice | None], value: int, violations: list[Violation]
) -> Choice | None:
    try:
        return read(value)
    except InvalidRequestError as error:
        violations.extend(error.violations)
        return None
