"""A head node in this process: a gRPC server around any heads."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.head_node.servicer import (
    MAX_MESSAGE_BYTES,
    MAX_PENDING_BYTES,
    SERVICE,
    EncoderHeads,
    HeadNodeServicer,
)
from winnow.heads.admission import TextAdmission
from winnow.heads.heads import Heads
from winnow.heads.manifest import EncoderEntry
from winnow.heads.metrics import HeadNodeMetrics
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer
from winnow.v1 import head_node_pb2_grpc

ENCODER = EncoderEntry(name="fake", fingerprint="fake-print", width=3)


@dataclass
class ServedHeads:
    """A head node in this process."""

    heads: Heads
    encoder: EncoderEntry = ENCODER
    most: int = 256
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    address: str = ""
    tracer: Tracer = NO_TRACER

    def __post_init__(self) -> None:
        self.admission = TextAdmission(self.most, HeadNodeMetrics(self.registry))
        self.servicer = HeadNodeServicer(self.admission, LONG)
        boundary = CallInterceptor(RpcMetrics(self.registry), quiet=True, tracer=self.tracer)
        self.server = Server(
            services=[SERVICE],
            interceptor=boundary,
            max_message_bytes=MAX_MESSAGE_BYTES,
            max_pending_bytes=MAX_PENDING_BYTES,
        )
        head_node_pb2_grpc.add_HeadNodeServiceServicer_to_server(self.servicer, self.server.grpc)

    async def start(self, serving: bool = True) -> str:
        self.address = f"127.0.0.1:{await self.server.start('127.0.0.1:0')}"
        if serving:
            self.servicer.set_heads(EncoderHeads(self.encoder, self.heads))
            await self.server.set_serving(True)
        return self.address

    def in_hand(self) -> float | None:
        return self.registry.get_sample_value("winnow_head_node_texts_in_hand")


@contextlib.asynccontextmanager
async def serving(
    heads: Heads, encoder: EncoderEntry = ENCODER, most: int = 256
) -> AsyncIterator[ServedHeads]:
    """Serves heads within the context."""
    made = ServedHeads(heads, encoder, most)
    await made.start()
    try:
        yield made
    finally:
        await made.server.drain(0)
