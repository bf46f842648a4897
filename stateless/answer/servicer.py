"""`winnow.v1.AnswerService`: convert, call, convert."""

from typing import Any

import grpc

from winnow.convert import answer as convert
from winnow.rpc import client_key, request_id
from winnow.rpc.deadline import of_context
from winnow.stateless.answer.core import AnswerCore
from winnow.v1 import answer_pb2

SERVICE = "winnow.v1.AnswerService"


class AnswerServicer:
    """The answer core behind gRPC. Its replies are serialised already: answers with long metadata
    are serialised once, in a thread, for all who get them.
    """

    def __init__(self, core: AnswerCore, default_deadline: float) -> None:
        """`default_deadline`: seconds that a caller without a deadline of its own is given."""
        self._core, self._default_deadline = core, default_deadline

    def add_to(self, server: grpc.aio.Server) -> None:
        """Has a server call it."""
        answer: grpc.RpcMethodHandler[Any, bytes] = grpc.unary_unary_rpc_method_handler(
            self.Answer, answer_pb2.AnswerRequest.FromString
        )
        handlers = grpc.method_handlers_generic_handler(SERVICE, {"Answer": answer})
        server.add_generic_rpc_handlers((handlers,))

    async def Answer(  # noqa: N802
        self, request: answer_pb2.AnswerRequest, context: Any
    ) -> bytes:
        answered = await self._core.ask(
            convert.request_of_message(request),
            of_context(context, self._default_deadline),
            client_key.of_metadata(context.invocation_metadata()),
        )
        return convert.answered_to_bytes(answered, request_id.current())
