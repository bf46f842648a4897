"""A front node that fails every call, or leaves it without a reply."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc


class FakeFront(grpc.GenericRpcHandler):
    """Notes the metadata of each call, and fails it with `status`. Without one, it waits."""

    def __init__(self) -> None:
        self.address = ""
        self.status: grpc.StatusCode | None = None
        self.metadata: dict[str, Any] = {}
        self.called, self.ended = threading.Event(), threading.Event()
        """Set when a call arrives, and when a call without a reply was cancelled or expired."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        self.metadata = dict(handler_call_details.invocation_metadata or ())
        return grpc.unary_unary_rpc_method_handler(self._reply)

    def _reply(self, _request: bytes, context: Any) -> bytes:
        if self.status is not None:
            context.abort(self.status, "scripted")
        context.add_callback(self.ended.set)
        self.called.set()
        self.ended.wait(60)
        return b""


@contextmanager
def fake_front() -> Iterator[FakeFront]:
    """Serves a fake front node on a free port."""
    front = FakeFront()
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((front,))
    front.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield front
    finally:
        front.ended.set()
        server.stop(None).wait()
