"""Replies with packed answers, as JSON.

The answers are serialised once, and their text becomes a part of each reply.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import Message

from winnow.domain.answered import Packed
from winnow.stateless.http.json_text import object_of, text_of, written
from winnow.v1 import answer_pb2, http_pb2


@dataclass(frozen=True, slots=True)
class PackedReply:
    """The reply to a question whose answers are packed."""

    rest: answer_pb2.AnswerResponse
    """The response without its answers."""
    packed: Packed

    def text(self) -> bytes:
        """The JSON of the whole `AnswerResponse`."""
        return _joined("answers", _answers(self.packed), self.rest)


@dataclass(frozen=True, slots=True)
class SeveralReplies:
    """The reply to several questions; the answers of at least one are packed."""

    results: Sequence[http_pb2.AnswerResult | PackedReply]
    request_id: str

    def text(self) -> bytes:
        """The JSON of the whole `AnswersResponse`."""
        results = b"[" + b",".join(map(_result, self.results)) + b"]"
        return _joined("results", results, http_pb2.AnswersResponse(request_id=self.request_id))


def _result(result: http_pb2.AnswerResult | PackedReply) -> bytes:
    if isinstance(result, PackedReply):
        return b'{"response":' + result.text() + b"}"
    return written(result)


def _answers(packed: Packed) -> bytes:
    """The array of the answers; made once, since one thread writes all."""
    if not packed.json:
        message = answer_pb2.AnswerResponse.FromString(packed.wire)
        packed.json = text_of(object_of(message)["answers"])
    return packed.json


def _joined(name: str, text: bytes, message: Message) -> bytes:
    """A message as JSON, with the text of one of its fields."""
    fields = {each: value for each, value in object_of(message).items() if each != name}
    return b'{"' + name.encode() + b'":' + text + b"," + text_of(fields)[1:]
