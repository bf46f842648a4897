"""A front that predicts: the real core and tokenizer over fake encoders and heads."""

import contextlib
from collections.abc import AsyncIterator

from fakes import FakeHeads, FakeTextEncoder
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.prediction import HeadInMemory, PredictionReply, PredictRequest, TokenSpan
from winnow.heads.admission import TextAdmission
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.encoder_groups import EncoderGroup, EncoderGroups, HeadMemory
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictor import Predictor
from winnow.stateless.heads.servicer import MAX_MESSAGE_BYTES, SERVICE, HeadServicer
from winnow.telemetry.metrics import RpcMetrics
from winnow.text.cached import CachedTextEncoder
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import head_pb2_grpc

MOST_TOKENS = 8


class FakePredictions:
    """A core over two encoder groups, `en` and `de`, and its parts."""

    def __init__(self, bundle: Bundle, most: int = 64, groups: bool = True) -> None:
        self.registry = CollectorRegistry()
        self.tokenizer = Tokenizer(bundle.tokenizer)
        self.encoders = {name: FakeTextEncoder() for name in ("en", "de")}
        self.heads = {
            "en": FakeHeads({"intent": ("ask", "tell"), "mood": ("glad", "sad", "calm")}),
            "de": FakeHeads({"absicht": ("fragen", "sagen")}),
        }
        self.heads["en"].spans["names"] = (TokenSpan("person", 0, 2, 0.9),)
        made = [
            EncoderGroup(
                name,
                f"of-{name}",
                tokenizer=self.tokenizer,
                encoder=CachedTextEncoder(self.encoders[name], 100),
                max_tokens=MOST_TOKENS,
                heads=self.heads[name],
                memory=lambda: HeadMemory(512, (HeadInMemory("intent", 3, 100, True),)),
            )
            for name in self.encoders
        ]
        metrics = HeadMetrics(self.registry)
        self.groups = known = EncoderGroups(made if groups else [])
        admission = TextAdmission(most, metrics)
        self.core = PredictCore(known, Predictor(known, metrics), admission, metrics)

    async def predict(self, *texts: str, ids: str = "intent", group: str = "") -> PredictionReply:
        request = PredictRequest(texts=texts, head_ids=tuple(ids.split(",")), group=group)
        return await self.core.predict(request, Deadline.after(LONG), "me")

    def predictions(self, result: str) -> float | None:
        return self.registry.get_sample_value("winnow_front_predictions_total", {"result": result})

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serves by gRPC; yields HOST:PORT."""
        server = Server(
            services=[SERVICE],
            interceptor=CallInterceptor(RpcMetrics(self.registry)),
            max_message_bytes=MAX_MESSAGE_BYTES,
        )
        servicer = HeadServicer(self.core, LONG)
        head_pb2_grpc.add_HeadServiceServicer_to_server(servicer, server.grpc)
        port = await server.start("127.0.0.1:0")
        await server.set_serving(True)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            await server.drain(0)
