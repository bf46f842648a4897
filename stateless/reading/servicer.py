"""Serves `winnow.v1.ReadService`: converts requests, calls the core, converts its results."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from winnow.convert import read as convert
from winnow.deadline import Deadline
from winnow.inference.fair_threads import FairThreads
from winnow.rpc import request_id
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import deadline_of
from winnow.text_reader import TextReader
from winnow.v1 import read_pb2, read_pb2_grpc

SERVICE = "winnow.v1.ReadService"
MAX_MESSAGE_BYTES = 4 << 20
"""Maximum size of a message, in bytes: a million characters of 4 bytes, and the ids of texts."""
MAX_PENDING_BYTES = 64 * MAX_MESSAGE_BYTES
"""Maximum size of all messages that are being received, in bytes."""
_BRIEF_ITEMS = 20
"""Maximum number of results that are converted on the event loop. More take longer than half a
millisecond.
"""
Reply = TypeVar("Reply")


class ReadMessages:
    """A reader of texts with messages as requests and results, for gRPC and HTTP."""

    def __init__(self, reader: TextReader, threads: FairThreads) -> None:
        """`threads` convert long results."""
        self.reader, self._threads = reader, threads

    async def read(
        self, request: read_pb2.ReadTextsRequest, deadline: Deadline, client: str
    ) -> read_pb2.ReadTextsResponse:
        """Reads texts."""
        found = await self.reader.read(convert.read_of_message(request), deadline, client)
        work = partial(convert.readings_to_message, found, request_id.current())
        return await self.convert(len(found.readings), client, work)

    async def rerank(
        self, request: read_pb2.RerankTextsRequest, deadline: Deadline, client: str
    ) -> read_pb2.RerankTextsResponse:
        """Orders texts by relevance."""
        ranked = await self.reader.rerank(convert.rerank_of_message(request), deadline, client)
        work = partial(convert.ranked_to_message, ranked, request_id.current())
        return await self.convert(len(ranked.results), client, work)

    async def highlight(
        self, request: read_pb2.HighlightTextRequest, deadline: Deadline, client: str
    ) -> read_pb2.HighlightTextResponse:
        """Finds the sentences of a text that answer."""
        wanted = convert.highlight_of_message(request)
        found = await self.reader.highlight(wanted, deadline, client)
        return convert.highlighted_to_message(found, request_id.current())

    async def stream(
        self, request: read_pb2.ReadTextsRequest, deadline: Deadline, client: str
    ) -> AsyncGenerator[read_pb2.TextReading, None]:
        """Yields each reading as soon as its text was read."""
        readings = self.reader.stream(convert.read_of_message(request), deadline, client)
        async with aclosing(readings):
            async for reading in readings:
                yield convert.reading_to_message(reading)

    async def convert(self, items: int, client: str, work: Callable[[], Reply]) -> Reply:
        """Runs the conversion of a result with this number of items, in a thread if it is long."""
        return work() if items <= _BRIEF_ITEMS else await self._threads.run(client, work)


class ReadServicer(read_pb2_grpc.ReadServiceServicer):
    """Serves a reader of texts over gRPC."""

    def __init__(self, messages: ReadMessages, default_deadline: float) -> None:
        """`default_deadline`: deadline in seconds of a call whose caller sets none."""
        self._messages, self._default_deadline = messages, default_deadline

    async def ReadTexts(  # noqa: N802
        self, request: read_pb2.ReadTextsRequest, context: Any
    ) -> read_pb2.ReadTextsResponse:
        return await self._messages.read(request, self._deadline(context), client_of(context))

    async def StreamReadings(  # noqa: N802
        self, request: read_pb2.ReadTextsRequest, context: Any
    ) -> AsyncGenerator[read_pb2.TextReading, None]:
        replies = self._messages.stream(request, self._deadline(context), client_of(context))
        async with aclosing(replies):
            async for reply in replies:
                yield reply

    async def RerankTexts(  # noqa: N802
        self, request: read_pb2.RerankTextsRequest, context: Any
    ) -> read_pb2.RerankTextsResponse:
        return await self._messages.rerank(request, self._deadline(context), client_of(context))

    async def HighlightText(  # noqa: N802
        self, request: read_pb2.HighlightTextRequest, context: Any
    ) -> read_pb2.HighlightTextResponse:
        return await self._messages.highlight(request, self._deadline(context), client_of(context))

    def _deadline(self, context: Any) -> Deadline:
        return deadline_of(context, self._default_deadline)
