"""Options of a question, and the call that asks it."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal, TypedDict

from winnow.client.calls import Call
from winnow.client.replies import Reply
from winnow.client.reply_messages import reply_of_message
from winnow.convert import answer as convert
from winnow.domain.answer_size import AnswerSize
from winnow.domain.question import PartialResults, ReadScope, Retriever
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import quoted, shortened
from winnow.v1 import answer_pb2, answer_pb2_grpc


class Options(TypedDict, total=False):
    """Options of a question. The front node chooses the value of an option that is None."""

    passages_to_read: int | None
    """Passages to read: over all shards (global), or on each shard (per-shard). 1 to 100."""
    answers: int | None
    """Maximum number of answers; a passage has at most one. 1 to 100."""
    read_scope: ReadScope | Literal["global", "per-shard"] | None
    """Whether to read the best passages of the whole cluster, or of each shard."""
    retriever: Retriever | Literal["dense", "sparse", "hybrid"] | None
    """Whether to find passages by their vectors, by words, or by both."""
    max_answer_tokens: int | None
    """Maximum length of an answer, in tokens of the reader. 1 to 64."""
    max_loss: float | None
    """Accuracy budget for early stopping, in points of exact match. 0 disables it. 0 to 100.

    Early stopping needs the global scope and the hybrid retriever.
    """
    partial_results: PartialResults | Literal["allow", "forbid"] | None
    """Whether to return answers of the other shards if a shard fails."""
    min_coverage: float | None
    """Share of the shards to wait for until the deadline. 0 to 1."""
    min_wait_factor: float | None
    """Share of the remaining time to wait for the last shard, after min_coverage. 0 to 1."""
    max_wait_factor: float | None
    """Share of the remaining time to wait when min_coverage has just been reached.

    At least min_wait_factor, at most 1.
    """
    heads: Sequence[str] | None
    """Ids of heads to apply to the question, at most 32; `Reply.heads` has the predictions."""
    fresh: bool | None
    """Whether to read passages even if the answer is cached."""
    where: str | None
    """A filter on the metadata of passages, such as 'year >= 2010 and lang = "en"'.

    Only passages that match may answer. At most 1000 characters.
    """
    after: Sequence[Position] | None
    """Positions of writes that the answer must include, as `put` and `delete` return them.

    At most one for each shard.
    """
    answer_size: AnswerSize | Literal["auto", "span", "sentence", "passage"] | None
    """Which part of the passage to show as the answer: `Answer.shown_text`."""
    min_confidence: float | None
    """Minimum confidence of an answer; below it, `Reply.has_answer` is false. 0 to 1.

    Needs a bundle with a calibrated confidence.
    """


_ENUMS: Mapping[str, Callable[[Any], int]] = {
    "read_scope": lambda value: convert.read_scope_message(ReadScope(value)),
    "retriever": lambda value: convert.retriever_message(Retriever(value)),
    "answer_size": lambda value: convert.answer_size_message(AnswerSize(value)),
    "partial_results": lambda value: convert.partial_results_message(PartialResults(value)),
}


_MESSAGE_FIELDS = {"where": "filter"}
"""Options whose field in the message has another name."""


def answer_call(question: str, options: Options) -> Call[Reply]:
    """The call that asks a question.

    Raises InvalidRequestError if a value has the wrong type. The front node checks limits. Raises
    TypeError if an option is unknown.
    """
    message = answer_pb2.AnswerRequest()
    violations = []
    for name, value in {"question": question, **options}.items():
        if name != "question" and name not in Options.__annotations__:
            raise TypeError(f"there is no option {quoted(name)}{_hint(name)}")
        if value is not None:
            try:
                _set_field(message, name, _ENUMS[name](value) if name in _ENUMS else value)
            except UnicodeEncodeError:  # a shell argument in another encoding has lone surrogates
                violations.append(Violation(name, "lone surrogate, not valid Unicode"))
            except (TypeError, ValueError) as error:
                violations.append(Violation(name, shortened(str(error))))
    if violations:
        raise InvalidRequestError(*violations)
    convert_reply = partial(reply_of_message, question)
    return Call(answer_pb2_grpc.AnswerServiceStub, "Answer", message, convert_reply)


def _set_field(message: answer_pb2.AnswerRequest, name: str, value: Any) -> None:
    if name == "heads":
        message.heads.extend([value] if isinstance(value, str) else value)
    elif name == "after":
        message.after.extend(map(_position, [value] if isinstance(value, Position) else value))
    elif name == "question" and not isinstance(value, str):
        raise TypeError("must be a string")
    else:
        setattr(message, _MESSAGE_FIELDS.get(name, name), value)


def _position(value: Position) -> answer_pb2.Position:
    if not isinstance(value, Position):
        raise TypeError(f"{quoted(str(value))} is not a winnow.client.Position")
    return answer_pb2.Position(shard=value.shard, sequence=value.sequence)


def _hint(name: str) -> str:
    for option, field in _MESSAGE_FIELDS.items():
        if name == field:
            return f": did you mean {option!r}?"
    matches = get_close_matches(name, Options.__annotations__, 1)
    return f": did you mean {matches[0]!r}?" if matches else ""
