"""`winnow.v1.AnswerService`: convert, call, convert."""

from typing import Any

from stateless.answer.core import AnswerCore
from winnow.convert import answer as convert
from winnow.rpc import client_key, request_id
from winnow.rpc.deadline import of_context
from winnow.v1 import answer_pb2, answer_pb2_grpc

SERVICE = "winnow.v1.AnswerService"


class AnswerServicer(answer_pb2_grpc.AnswerServiceServicer):
    """The answer core behind gRPC."""

    def __init__(self, core: AnswerCore, default_deadline: float) -> None:
        """`default_deadline`: seconds that a caller without a deadline of its own is given."""
        self._core, self._default_deadline = core, default_deadline

    async def Answer(  # noqa: N802
        self, request: answer_pb2.AnswerRequest, context: Any
    ) -> answer_pb2.AnswerResponse:
        answered = await self._core.ask(
            convert.request_of_message(request),
            of_context(context, self._default_deadline),
            client_key.of_metadata(context.invocation_metadata()),
        )
        return convert.answered_to_message(answered, request_id.current())
