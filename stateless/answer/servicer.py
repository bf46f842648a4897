"""`winnow.v1.AnswerService`: convert, call, convert."""

from typing import Any

from stateless.answer.admission import Admission
from stateless.answer.answering import Answerer
from stateless.answer.validation import Defaults, validate
from stateless.metrics import FrontMetrics
from winnow.convert import answer as convert
from winnow.errors import UnavailableError
from winnow.rpc import client_key, request_id
from winnow.rpc.deadline import of_context
from winnow.v1 import answer_pb2, answer_pb2_grpc

SERVICE = "winnow.v1.AnswerService"


class AnswerServicer(answer_pb2_grpc.AnswerServiceServicer):
    """Answers questions, once the cluster is formed."""

    def __init__(
        self,
        defaults: Defaults,
        admission: Admission,
        default_deadline: float,
        metrics: FrontMetrics,
    ) -> None:
        self._defaults, self._admission, self._default_deadline = (
            defaults,
            admission,
            default_deadline,
        )
        self._metrics = metrics
        self._answerer: Answerer | None = None

    def serve(self, answerer: Answerer) -> None:
        """From now on questions go to `answerer`."""
        self._answerer = answerer

    async def Answer(  # noqa: N802
        self, request: answer_pb2.AnswerRequest, context: Any
    ) -> answer_pb2.AnswerResponse:
        question = validate(request, self._defaults)
        deadline = of_context(context, self._default_deadline)
        deadline.check("the question was looked at")
        if self._answerer is None:
            raise UnavailableError("not every shard of the index has been found yet")
        answerer = self._answerer
        client = client_key.of_metadata(context.invocation_metadata())
        with (
            self._admission.enter(question, answerer.shards, deadline.left(), client) as admitted,
            self._metrics.in_flight.track_inprogress(),
        ):
            answered = await answerer.answer(admitted.question, deadline)
        return convert.answered_to_message(
            answered, request_id.current(), admitted.asked, admitted.granted
        )
