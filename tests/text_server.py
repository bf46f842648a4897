"""An encoder node in this process: a gRPC server around any encoder."""

import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.domain.encoder import EncoderInfo
from winnow.encoder_node.admission import AdmittedEncoder
from winnow.encoder_node.metrics import EncoderMetrics
from winnow.encoder_node.servicer import SERVICE, EncoderServicer
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer
from winnow.text.encoder import TextEncoder
from winnow.v1 import encoder_pb2_grpc

INFO = EncoderInfo(bundle="fake", fingerprint="fake-print", dimension=2, width=3, max_tokens=8)
VOCABULARY = 100


@dataclass
class TextServer:
    """An encoder node in this process."""

    encoder: TextEncoder
    info: EncoderInfo = INFO
    most: int = 1_000
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    address: str = ""
    tracer: Tracer = NO_TRACER

    def __post_init__(self) -> None:
        self.servicer = EncoderServicer(self.info, VOCABULARY, LONG)
        metrics = EncoderMetrics(self.registry)
        self.admitted = AdmittedEncoder(self.encoder, self.most, time.monotonic, metrics)
        self.server = Server(
            services=[SERVICE],
            interceptor=CallInterceptor(RpcMetrics(self.registry), quiet=True, tracer=self.tracer),
        )
        encoder_pb2_grpc.add_EncoderServiceServicer_to_server(self.servicer, self.server.grpc)

    async def start(self, serving: bool = True) -> str:
        self.address = f"127.0.0.1:{await self.server.start('127.0.0.1:0')}"
        if serving:
            self.servicer.set_encoder(self.admitted)
            await self.server.set_serving(True)
        return self.address


@contextlib.asynccontextmanager
async def serving(
    encoder: TextEncoder, info: EncoderInfo = INFO, most: int = 1_000
) -> AsyncIterator[TextServer]:
    """Serves an encoder within the context."""
    made = TextServer(encoder, info, most)
    await made.start()
    try:
        yield made
    finally:
        await made.server.drain(0)
