"""The answer core: from a request to an answer, whatever brought the request.

Knows neither gRPC nor HTTP: both convert, call `ask`, and convert.
"""

from stateless.answer.admission import Admission
from stateless.answer.answering import Answerer
from stateless.answer.validation import Defaults, validate
from stateless.metrics import FrontMetrics
from winnow.deadline import Deadline
from winnow.domain.answered import Answered
from winnow.domain.request import AnswerRequest
from winnow.errors import UnavailableError


class AnswerCore:
    """Answers requests, once the cluster is formed."""

    def __init__(self, defaults: Defaults, admission: Admission, metrics: FrontMetrics) -> None:
        self._defaults, self._admission, self._metrics = defaults, admission, metrics
        self._answerer: Answerer | None = None

    def serve(self, answerer: Answerer) -> None:
        """From now on questions go to `answerer`."""
        self._answerer = answerer

    async def ask(self, request: AnswerRequest, deadline: Deadline, client: str = "") -> Answered:
        """Validates a request, lets it in, and answers it before `deadline`.

        Args:
            request: as the caller made it.
            deadline: of the caller.
            client: a key of the caller, for sharing fairly; empty if it has none.

        Raises:
            InvalidRequestError: it breaks a rule; every field that does is named.
            DeadlineExceededError: nothing was read before the deadline.
            OverloadedError: it cannot be answered in time; says when to try again.
            UnavailableError: not every shard was found yet, or no shard answered, or one did not
                and partial results are forbidden.

        """
        question = validate(request, self._defaults)
        deadline.check("the question was looked at")
        if self._answerer is None:
            raise UnavailableError("not every shard of the index has been found yet: try again")
        answerer = self._answerer
        with (
            self._admission.enter(question, answerer.shards, deadline.left(), client) as admitted,
            self._metrics.in_flight.track_inprogress(),
        ):
            return await answerer.answer(admitted, deadline)
