"""Options of a question, and the call that asks it."""

from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from typing import Literal, TypedDict

from winnow.client.calls import Call
from winnow.client.replies import Reply
from winnow.client.reply_messages import reply_of_message
from winnow.client.requests import MESSAGE_FIELDS, build_request
from winnow.domain.answer_size import AnswerSize
from winnow.domain.question import PartialResults, ReadScope, Retriever
from winnow.domain.write import Position
from winnow.quoting import quoted
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
    """Share of the remaining time to wait if as many shards are missing as min_coverage allows.

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


def answer_call(question: str, options: Options) -> Call[Reply]:
    """The call that asks a question.

    Raises InvalidRequestError if a value has the wrong type. The front node checks limits. Raises
    TypeError if an option is unknown.
    """
    if unknown := [name for name in options if name not in Options.__annotations__]:
        raise TypeError(f"there is no option {quoted(unknown[0])}{_hint(unknown[0])}")
    message = build_request(
        answer_pb2.AnswerRequest, {"question": question, **options}, {"heads": _heads}
    )
    convert_reply = partial(reply_of_message, question)
    return Call(answer_pb2_grpc.AnswerServiceStub, "Answer", message, convert_reply)


def _heads(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value


def _hint(name: str) -> str:
    for option, field in MESSAGE_FIELDS.items():
        if name == field:
            return f": did you mean {option!r}?"
    matches = get_close_matches(name, Options.__annotations__, 1)
    return f": did you mean {matches[0]!r}?" if matches else ""
