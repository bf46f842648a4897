"""Runs the calls of the MCP server on the operations of the front, as HTTP requests run them.

So keys, limits, admission, fair turns, metrics and log lines are those of the other endpoints.
"""

import time
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from google.protobuf.message import Message

from winnow import caller
from winnow.client.aio import AsyncClientApi
from winnow.client.calls import Call, set_index, set_tenant
from winnow.deadline import Deadline
from winnow.errors import NotServedError, WinnowError
from winnow.inference.fair_threads import FairThreads
from winnow.rpc.status import code_of
from winnow.stateless.http.call import HttpOperation, NewDeadline
from winnow.stateless.http.endpoint import RecordCall
from winnow.stateless.http.packed_answers import PackedReply

Result = TypeVar("Result")
_THREAD_BYTES = 8 * 1024
"""Replies of at least this size are converted in a thread."""


@dataclass(frozen=True, slots=True)
class McpRequest:
    """The HTTP request of an agent that is being served."""

    client: str
    """Key of the client, for fair sharing."""
    new_deadline: NewDeadline | None
    """Returns the deadline of all calls of the request; None if each call has its default."""
    index: str = ""
    """Name of the index of all calls of the request; empty for the default index."""
    tenant: str = ""
    """Tenant of all calls of the request; empty if the key of the caller decides."""


current_request: ContextVar[McpRequest] = ContextVar("mcp_request")
"""The request that the current task serves."""


class FrontCalls(AsyncClientApi):
    """Runs calls in this process. The timeout of a call is that of the agent's HTTP request."""

    def __init__(
        self, operations: Iterable[HttpOperation], threads: FairThreads, record_call: RecordCall
    ) -> None:
        """`threads` convert long replies. `record_call` records each call."""
        self._operations = {each.name: each for each in operations}
        self._threads, self._record_call = threads, record_call

    async def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        operation = self._operations.get(call.method)
        if operation is None:
            raise NotServedError(f"this front does not serve {call.method}")
        started, code = time.perf_counter(), "CANCELLED"
        failure: Exception | None = None
        try:
            result = await self._run(operation, call)
            code = "OK"
            return result
        except WinnowError as error:
            code, failure = code_of(error).name, error
            raise
        except Exception as error:
            code, failure = "INTERNAL", error
            raise
        finally:
            self._record_call(operation.name, code, time.perf_counter() - started, failure)

    async def _run(self, operation: HttpOperation, call: Call[Result]) -> Result:
        request = current_request.get()
        caller.require_scope(operation.scope)
        set_index(call.request, request.index)
        set_tenant(call.request, request.tenant)
        limits = operation.limits
        new_deadline = request.new_deadline or partial(Deadline.after, limits.default_deadline)
        if error := limits.refusal(request.client):
            raise error
        reply: Any = await operation.run(call.request, new_deadline, request.client)
        if isinstance(reply, PackedReply):
            packed = reply
            return await self._threads.run(request.client, lambda: call.result(packed.to_message()))
        assert isinstance(reply, Message), "an operation that mirrors a unary call"
        if reply.ByteSize() < _THREAD_BYTES:
            return call.result(reply)
        return await self._threads.run(request.client, lambda: call.result(reply))
