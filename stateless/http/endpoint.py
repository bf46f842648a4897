"""Serves a call over HTTP: checks its key and deadline, reads its request, writes its reply.

For HTTP this module does what `winnow.rpc.message_interceptor` and `winnow.rpc.interceptor` do for
gRPC. Request ids, traces, errors, metrics and log lines are the same.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from winnow.errors import (
    DeadlineExceededError,
    PermissionDeniedError,
    UnavailableError,
    WinnowError,
    invalid_field,
)
from winnow.quoting import quoted
from winnow.rpc import request_id
from winnow.rpc.bounded_receive import BoundedReceive
from winnow.rpc.interceptor import bind_request_id
from winnow.rpc.server import KIB
from winnow.rpc.status import code_of
from winnow.stateless.http.call import LINES_TYPE, Gate, HttpOperation, LinesReply
from winnow.stateless.http.headers import (
    TENANT_HEADER,
    Headers,
    before_deadline,
    header_value,
    new_deadline_of,
    tenant_of,
    text_of,
)
from winnow.stateless.http.json_fields import json_names_in_errors
from winnow.stateless.http.json_text import JsonText
from winnow.stateless.http.probes import Readiness
from winnow.stateless.http.problems import LateBodyError, response_of
from winnow.stateless.http.receiving import (
    ClientDisconnectedError,
    RequestBody,
    check_media_type,
    while_connected,
)
from winnow.telemetry.tracing.span import NO_SPAN, Span
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer

RecordCall = Callable[[str, str, float, Exception | None], None]
"""Records a call: `record(name, gRPC status, seconds, error)`."""
INDEX_PARAMETER = "index"
"""Name of the index in paths such as /v1/indexes/{index}/answer."""
MAX_PENDING_BYTES = 64 * KIB * KIB
"""Maximum size of all bodies of one operation that are being received, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointContext:
    """What all endpoints of a server share."""

    gate: Gate
    """Checks keys."""
    record_call: RecordCall
    json: JsonText
    """Converts JSON to messages and back."""
    readiness: Readiness
    tracer: Tracer = NO_TRACER


class RecordedEndpoint(ABC):
    """Serves one path as an ASGI application: with a trace, a log line and metrics of each call."""

    def __init__(self, name: str, title: str, context: EndpointContext) -> None:
        """`name` of the call in metrics and logs; `title` in traces, such as `POST /v1/answer`."""
        self._name, self._title, self._context = name, title, context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one call; sends nothing if the caller has disconnected."""
        with self._traced(scope):
            bind_request_id(request_id.current())
            response = await self._recorded(scope, receive)
        if response is not None:
            await response(scope, receive, send)

    @abstractmethod
    async def respond(self, scope: Scope, receive: Receive) -> Response:
        """Returns the response.

        Raises WinnowError to refuse the call, and ClientDisconnectedError if its caller has gone.
        """

    def _traced(self, scope: Scope) -> Span:
        """Opens a span in the caller's trace or in a new trace, if the call is traced."""
        tracer = self._context.tracer
        if not tracer.may_trace(self._name):
            return NO_SPAN
        return tracer.begin(self._title, scope["headers"])

    async def _recorded(self, scope: Scope, receive: Receive) -> Response | None:
        """Returns the response, or None if the caller has disconnected."""
        started, code = time.perf_counter(), "CANCELLED"
        failure: Exception | None = None
        try:
            response = await self.respond(scope, receive)
            code = _code_of_status(response.status_code)
            return response
        except ClientDisconnectedError:
            return None
        except WinnowError as error:
            code, failure = code_of(error).name, error
            return response_of(error, request_id.current())
        except Exception as error:  # noqa: BLE001 (an error must not end the node)
            code, failure = "INTERNAL", error
            return response_of(WinnowError(), request_id.current())
        finally:
            seconds = time.perf_counter() - started
            self._context.record_call(self._name, code, seconds, failure)


def _code_of_status(status: int) -> str:
    if status < HTTPStatus.BAD_REQUEST:
        return "OK"
    return "INVALID_ARGUMENT" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "INTERNAL"


class Endpoint(RecordedEndpoint):
    """Serves one operation."""

    def __init__(self, call: HttpOperation, context: EndpointContext) -> None:
        super().__init__(call.name, f"{call.verb} {call.path}", context)
        self._call = call
        self._bodies = BoundedReceive(MAX_PENDING_BYTES // max(call.max_body_bytes, KIB))

    async def respond(self, scope: Scope, receive: Receive) -> Response:
        """Reads the request, runs the call, and returns its reply as JSON."""
        reply = await self._reply(scope, receive)
        if isinstance(reply, LinesReply):
            return StreamingResponse(reply.parts, media_type=LINES_TYPE)
        return Response(reply, media_type="application/json")

    async def _reply(self, scope: Scope, receive: Receive) -> bytes | LinesReply:
        call, context, headers = self._call, self._context, text_of(scope["headers"])
        if context.readiness.starting and not call.before_ready:
            raise UnavailableError("this front is not ready yet: see /readyz, and try again")
        client = context.gate(call.scope, headers)
        new_deadline = new_deadline_of(headers, call.limits.default_deadline)
        tenant = tenant_of(headers)
        if tenant and call.of_all_tenants:
            raise PermissionDeniedError(
                f"the reply is of all tenants: leave out the header {TENANT_HEADER}"
            )
        if error := call.limits.refusal(client):
            raise error
        data = await self._data(scope, headers, receive)

        async def read_and_run() -> bytes | LinesReply:
            parsing = context.json.parse(
                call.request, data, client, ignore_unknown=call.ignores_unknown_fields
            )
            with json_names_in_errors(call.request):
                # parsing may wait for longer requests of other callers
                request = await before_deadline(parsing, new_deadline())
                _set_index(request, scope)
                _set_tenant(request, tenant)
                if (more := call.calls_of_request(request) - 1) > 0:
                    context.gate(call.scope, headers, more, 1)
                reply = await call.run(request, new_deadline, client)
            if isinstance(reply, LinesReply):
                return reply
            if isinstance(reply, Message):
                return await context.json.to_json(reply, client)
            return await context.json.long_to_json(reply, client)

        return await while_connected(read_and_run(), receive)

    async def _data(self, scope: Scope, headers: Headers, receive: Receive) -> bytes:
        """Returns the request as JSON, from the body, or from the query of a GET."""
        if self._call.verb == "GET":
            query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            with json_names_in_errors(self._call.request):
                return _query_to_json(self._call.request.DESCRIPTOR, query)
        return await read_body(self._bodies, self._call.max_body_bytes, headers, receive)


def _set_index(request: Any, scope: Scope) -> None:
    """Sets the index of a request, and of each of its questions, if its path names one.

    Raises InvalidRequestError if the request or a question names another index.
    """
    index = scope.get("path_params", {}).get(INDEX_PARAMETER)
    if not index:
        return
    for field, message in _messages_with(request, "index"):
        if message.index not in ("", index):
            raise invalid_field(field, f"{quoted(message.index)} is not the index of the path")
    request.index = index


def _set_tenant(request: Any, tenant: str) -> None:
    """Sets the tenant of a request that has one, if the header `x-winnow-tenant` names one.

    Raises InvalidRequestError if the request or a question names another tenant.
    """
    if not tenant or "tenant" not in request.DESCRIPTOR.fields_by_name:
        return
    for field, message in _messages_with(request, "tenant"):
        if message.tenant not in ("", tenant):
            raise invalid_field(field, f"the header {TENANT_HEADER} names another tenant")
    request.tenant = tenant


def _messages_with(request: Any, field: str) -> Iterator[tuple[str, Any]]:
    """Yields a request and each of its questions, with the path of their `field`."""
    yield field, request
    for number, question in enumerate(getattr(request, "requests", ())):
        yield f"requests[{number}].{field}", question


async def read_body(
    bodies: BoundedReceive, max_bytes: int, headers: Headers, receive: Receive
) -> bytes:
    """Returns the body of a request, which must be JSON of at most `max_bytes`.

    `bodies` limits the memory of all bodies that are being received.
    """
    check_media_type(headers)
    try:
        body = RequestBody(receive, max_bytes, bool(header_value(headers, "content-length")))
        data: bytes = await bodies.first_message(body)
    except DeadlineExceededError as error:
        raise LateBodyError(
            "the body did not arrive in time: send all of it without a pause"
        ) from error
    return data


def _query_to_json(message: Any, query: Iterable[tuple[str, str]]) -> bytes:
    """Converts a query to the JSON of a message with this descriptor. A repeated field may occur
    several times.

    Raises InvalidRequestError if another field does: one of two filters would be ignored.
    """
    repeated = {name for each in message.fields if each.is_repeated for name in _names(each)}
    values: dict[str, str | list[str]] = {}
    for name, value in query:
        if name in repeated:
            values[name] = [*values.get(name, ()), value]
        elif name in values:
            raise invalid_field(name, "occurs twice in the query: give it once")
        else:
            values[name] = value
    return json.dumps(values).encode()


def _names(field: FieldDescriptor) -> tuple[str, str]:
    return field.name, field.json_name
