"""Asking a front node of Winnow."""

from bench.faults.rows import Row, answered
from winnow.client.messages import AnswerClient
from winnow.errors import WinnowError
from winnow.v1 import answer_pb2


class Asking:
    """Turns what becomes of a question into a row, and keeps the last answer."""

    def __init__(self, client: AnswerClient, deadline: float, passages: int | None = None) -> None:
        """`deadline`: seconds for each question; `passages`: to read, else the default."""
        self._client, self._deadline, self._passages = client, deadline, passages
        self.reply = answer_pb2.AnswerResponse()

    async def __call__(self, question: str) -> Row:
        """A row without its times."""
        request = answer_pb2.AnswerRequest(
            question=question, passages_to_read=self._passages, max_loss=0, fresh=True
        )
        try:
            self.reply = await self._client.ask(request, self._deadline)
        except WinnowError as error:
            return Row(0.0, 0.0, str(error).split(":", 1)[0], 0.0, complete=False)
        return answered(self.reply)
