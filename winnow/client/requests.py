"""Builds the request messages of a client from plain values."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from winnow.convert import answer as convert
from winnow.domain.answer_size import AnswerSize
from winnow.domain.question import PartialResults, ReadScope, Retriever
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, Violation, invalid_field
from winnow.quoting import quoted, shortened
from winnow.v1 import answer_pb2

Request = TypeVar("Request", bound=Message)
Value = TypeVar("Value")
UNREPRESENTABLE = TypeError, ValueError, OverflowError, RecursionError, DecodeError
"""Errors for values that a message cannot hold. The last two are of values that are too deep."""
MESSAGE_FIELDS = {"where": "filter"}
"""Arguments whose field in the message has another name."""


def build_request(
    kind: type[Request],
    values: Mapping[str, Any],
    converters: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Request:
    """Builds a message from arguments by name. Arguments that are None are left out.

    `converters` convert arguments that only some requests have.

    Raises InvalidRequestError if the message cannot hold some values; `violations` names each.
    """
    request, violations = kind(), []
    all_converters = {**_CONVERTERS, **(converters or {})}
    for name, value in values.items():
        if value is None:
            continue
        try:
            converted = all_converters[name](value) if name in all_converters else value
            request.MergeFrom(kind(**{MESSAGE_FIELDS.get(name, name): converted}))
        except UnicodeEncodeError:  # a shell argument in another encoding has lone surrogates
            violations.append(Violation(name, "is not valid UTF-8 text"))
        except UNREPRESENTABLE as error:
            violations.append(Violation(name, shortened(str(error))))
    if violations:
        raise InvalidRequestError(*violations)
    return request


def listed(field: str, values: Iterable[Value]) -> Iterable[Value]:
    """Returns several values; raises InvalidRequestError for one value, and for a text."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise invalid_field(field, f"is not a list, but of the type {type(values).__name__}")
    return values


def _question(value: object) -> object:
    if not isinstance(value, str):
        raise TypeError("must be a string")
    return value


def _positions(value: Position | Sequence[Position]) -> list[answer_pb2.Position]:
    return [_position(each) for each in ([value] if isinstance(value, Position) else value)]


def _position(value: object) -> answer_pb2.Position:
    if not isinstance(value, Position):
        raise TypeError(f"{quoted(str(value))} is not a winnow.client.Position")
    return answer_pb2.Position(shard=value.shard, sequence=value.sequence, index=value.index)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"is not a text but of the type {type(value).__name__}")
    return value


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "question": _question,
    "text": _text,
    "after": _positions,
    "read_scope": lambda value: convert.read_scope_message(ReadScope(value)),
    "retriever": lambda value: convert.retriever_message(Retriever(value)),
    "answer_size": lambda value: convert.answer_size_message(AnswerSize(value)),
    "partial_results": lambda value: convert.partial_results_message(PartialResults(value)),
}
