"""Converts replies with packed answers to JSON.

Packed answers were serialised once for all callers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import Message

from winnow.domain.answered import PackedAnswers
from winnow.stateless.http.json_text import message_to_json, object_of, value_to_json
from winnow.v1 import answer_pb2, http_pb2


@dataclass(frozen=True, slots=True)
class PackedReply:
    """The reply to a question with packed answers."""

    envelope: answer_pb2.AnswerResponse
    """The response without its answers."""
    packed: PackedAnswers

    def to_json(self) -> bytes:
        """Returns the JSON of the whole `AnswerResponse`."""
        return _to_json_with("answers", _answers(self.packed), self.envelope)

    def to_message(self) -> answer_pb2.AnswerResponse:
        """Returns the whole `AnswerResponse`. Call it in a thread, because it may take long."""
        message = answer_pb2.AnswerResponse.FromString(self.packed.wire)
        message.MergeFrom(self.envelope)
        return message


@dataclass(frozen=True, slots=True)
class PackedBatchReply:
    """The reply to a request with several questions, if a result has packed answers."""

    results: Sequence[http_pb2.AnswerResult | PackedReply]
    request_id: str

    def to_json(self) -> bytes:
        """Returns the JSON of the whole `AnswersResponse`."""
        results = b"[" + b",".join(map(_result, self.results)) + b"]"
        return _to_json_with(
            "results", results, http_pb2.AnswersResponse(request_id=self.request_id)
        )


def _result(result: http_pb2.AnswerResult | PackedReply) -> bytes:
    if isinstance(result, PackedReply):
        return b'{"response":' + result.to_json() + b"}"
    return message_to_json(result)


def _answers(packed: PackedAnswers) -> bytes:
    """Returns the JSON array of the answers, and keeps it. Call it only in the JSON thread."""
    if not packed.json:
        message = answer_pb2.AnswerResponse.FromString(packed.wire)
        packed.json = value_to_json(object_of(message)["answers"])
    return packed.json


def _to_json_with(name: str, text: bytes, message: Message) -> bytes:
    """Returns a message as JSON, in which the field `name` has the JSON `text`."""
    fields = {each: value for each, value in object_of(message).items() if each != name}
    return b'{"' + name.encode() + b'":' + text + b"," + value_to_json(fields)[1:]
