"""Options of a question, and the call that asks it."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal, TypedDict

from winnow.client.calls import Call
from winnow.client.received import reply_of
from winnow.client.replies import Reply
from winnow.convert import answer as convert
from winnow.domain.question import PartialResults, ReadScope, Retriever
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import quoted, shortened
from winnow.v1 import answer_pb2, answer_pb2_grpc


class Options(TypedDict, total=False):
    """Options of a question. The front node chooses where one is left out or None."""

    passages_to_read: int | None
    """Passages to read: in all (global) or on each shard (per-shard). 1 to 100."""
    answers: int | None
    """Most answers to return, at most one for each passage read. 1 to 100."""
    read_scope: ReadScope | Literal["global", "per-shard"] | None
    """Read the best passages of the whole cluster, or every shard's own best."""
    retriever: Retriever | Literal["dense", "sparse", "hybrid"] | None
    """Find passages by their encodings, by words, or by both."""
    max_answer_tokens: int | None
    """Longest answer, in tokens of the reader's vocabulary. 1 to 64."""
    max_loss: float | None
    """Accuracy budget for early stopping, in points of exact match. 0 disables it. 0 to 100.

    Early stopping needs the global scope and the hybrid retriever.
    """
    partial_results: PartialResults | Literal["allow", "forbid"] | None
    """Whether an answer may come from a part of the index."""
    min_coverage: float | None
    """Share of the shards to wait for until the deadline. 0 to 1."""
    min_wait_factor: float | None
    """Share of the time left to wait for the last shard, once min_coverage is reached. 0 to 1."""
    max_wait_factor: float | None
    """The same where as many shards are missing as min_coverage allows. min_wait_factor to 1."""
    heads: Sequence[str] | None
    """Ids of heads to apply to the question, at most 32; `Reply.heads` has the predictions."""
    fresh: bool | None
    """Read passages even if the answer is in the cache."""
    where: str | None
    """A filter on the metadata of passages, such as 'year >= 2010 and lang = "en"'.

    Only passages that match may answer. At most 1000 characters.
    """
    after: Sequence[Position] | None
    """Positions, from `put` and `delete`, of writes that the answer must see; one a shard."""


_ENUMS: Mapping[str, Callable[[Any], int]] = {
    "read_scope": lambda value: convert.read_scope_message(ReadScope(value)),
    "retriever": lambda value: convert.retriever_message(Retriever(value)),
    "partial_results": lambda value: answer_pb2.PartialResults.Value(
        f"PARTIAL_RESULTS_{PartialResults(value).name}"
    ),
}


_NAMES = {"where": "filter"}
"""Options that have another name in the message."""


def request_message(question: str, options: Options) -> answer_pb2.AnswerRequest:
    """The message of a question. Raises InvalidRequestError if a value has the wrong type, or is
    one that no message can hold; limits are checked by the front node. Raises TypeError if there is
    no such option.
    """
    message = answer_pb2.AnswerRequest()
    violations = []
    for name, value in {"question": question, **options}.items():
        if name != "question" and name not in Options.__annotations__:
            raise TypeError(f"there is no option {quoted(name)}{_closest(name)}")
        if value is not None:
            try:
                _set(message, name, _ENUMS[name](value) if name in _ENUMS else value)
            except UnicodeEncodeError:  # such as an argument in another alphabet than the shell's
                violations.append(Violation(name, "lone surrogate, not valid Unicode"))
            except (TypeError, ValueError) as error:
                violations.append(Violation(name, shortened(str(error))))
    if violations:
        raise InvalidRequestError(*violations)
    return message


def answer_call(question: str, options: Options) -> Call[Reply]:
    """The call that asks a question. Raises as `request_message` does."""
    request = request_message(question, options)
    return Call(answer_pb2_grpc.AnswerServiceStub, "Answer", request, partial(reply_of, question))


def _set(message: answer_pb2.AnswerRequest, name: str, value: Any) -> None:
    if name == "heads":
        message.heads.extend([value] if isinstance(value, str) else value)
    elif name == "after":
        message.after.extend(map(_position, [value] if isinstance(value, Position) else value))
    elif name == "question" and not isinstance(value, str):
        raise TypeError("is no string")
    else:
        setattr(message, _NAMES.get(name, name), value)


def _position(place: Position) -> answer_pb2.Position:
    if not isinstance(place, Position):
        raise TypeError(f"{quoted(str(place))} is no winnow.client.Position")
    return answer_pb2.Position(shard=place.shard, sequence=place.sequence)


def _closest(name: str) -> str:
    close = get_close_matches(name, Options.__annotations__, 1)
    return f": did you mean {close[0]!r}?" if close else ""
