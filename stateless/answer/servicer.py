"""Serves `winnow.v1.AnswerService`: converts requests, calls the answer core, converts answers."""

from dataclasses import replace
from functools import partial
from typing import Any

import grpc

from winnow.convert import answer as convert
from winnow.domain.answered import Answered
from winnow.inference.fair_threads import FairThreads
from winnow.rpc import request_id
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import deadline_of
from winnow.stateless.answer.core import AnswerCalls
from winnow.v1 import answer_pb2

SERVICE = "winnow.v1.AnswerService"


class AnswerServicer:
    """Serves the answer core over gRPC.

    The handler returns bytes, because an answer with long metadata is serialised once for all
    callers who get this answer.
    """

    def __init__(self, core: AnswerCalls, default_deadline: float) -> None:
        """`default_deadline`: deadline in seconds of a call whose caller sets none."""
        self._core, self._default_deadline = core, default_deadline

    def add_to(self, server: grpc.aio.Server) -> None:
        """Registers the service with a server."""
        answer: grpc.RpcMethodHandler[Any, bytes] = grpc.unary_unary_rpc_method_handler(
            self.Answer, answer_pb2.AnswerRequest.FromString
        )
        handlers = grpc.method_handlers_generic_handler(SERVICE, {"Answer": answer})
        server.add_generic_rpc_handlers((handlers,))

    async def Answer(  # noqa: N802
        self, request: answer_pb2.AnswerRequest, context: Any
    ) -> bytes:
        answered = await self._core.answer(
            convert.request_of_message(request),
            deadline_of(context, self._default_deadline),
            client_of(context),
        )
        return convert.answered_to_bytes(answered, request_id.current())


async def pack(threads: FairThreads, answered: Answered, client: str) -> Answered:
    """Serialises an answer with long metadata in `threads`, and stores the bytes in the answer.

    A kilobyte of metadata takes up to half a millisecond, so it is serialised once for all callers
    who get the answer. The threads serve clients in turn. The question stays in flight meanwhile.
    """
    if convert.is_cheap_to_convert(answered):
        return answered
    packed = await threads.run(client, partial(convert.pack_answers, answered))
    return replace(answered, packed=packed)
