"""Makes operations of the HTTP interface from unary gRPC calls."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from winnow.deadline import Deadline
from winnow.stateless.http.call import HttpOperation, NewDeadline
from winnow.stateless.http.headers import before_deadline

Reply = TypeVar("Reply")
Work = Callable[[Any, Deadline, str], Coroutine[Any, Any, Reply]]
"""Serves a call: `work(message, deadline, client)` returns the response."""


def rpc_operation(
    service: ServiceDescriptor, name: str, work: Work[Any], path: str, about: str, **fields: Any
) -> HttpOperation:
    """Returns the operation that mirrors the call `name` of a gRPC service.

    The service defines the messages. `fields` are other fields of `HttpOperation`.
    """
    method = service.methods_by_name[name]
    request, response = map(GetMessageClass, (method.input_type, method.output_type))
    run = before_its_deadline(work)
    return HttpOperation(
        name=name, path=path, about=about, run=run, request=request, response=response, **fields
    )


def before_its_deadline(
    work: Work[Reply],
) -> Callable[[Any, NewDeadline, str], Coroutine[Any, Any, Reply]]:
    """Returns a function that runs `work` and cancels it at the deadline of the request."""

    async def run(message: Any, new_deadline: NewDeadline, client: str) -> Reply:
        deadline = new_deadline()
        return await before_deadline(work(message, deadline, client), deadline)

    return run
