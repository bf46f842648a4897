"""Opens the rings of a front, and has its server predict."""

import asyncio

from winnow.bundle import load_bundle
from winnow.stateless.composing.encoders import Encoders, OpenEncoder
from winnow.stateless.composing.front import Front, Part
from winnow.stateless.composing.local_heads import LocalHeadsOfRings
from winnow.stateless.composing.open_heads import HeadsOfRings
from winnow.stateless.composing.placed_heads import PlacedHeadsOfRings
from winnow.stateless.heads.admission import TextAdmission
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictor import Predictor
from winnow.stateless.heads.ring import Ring
from winnow.stateless.heads.rings import Rings
from winnow.stateless.heads.servicer import HeadServicer
from winnow.stateless.http.predictions import predict_calls
from winnow.v1 import head_pb2_grpc

_SPECIAL = 2
"""Tokens that frame a text."""


async def open_rings(front: Front, encoders: Encoders, own: OpenEncoder) -> tuple[Rings, Part]:
    """The default ring, on the encoder of questions, and those with encoders of their own."""
    if not front.settings.serves_heads:
        return Rings(), Part()
    if front.settings.head_servers:
        placed = PlacedHeadsOfRings(front)
        rings = await _rings(front, encoders, own, placed)
        return rings, Part(rings.warm_up, {"head servers": placed.follow})
    rings = await _rings(front, encoders, own, LocalHeadsOfRings(front))
    return rings, Part(rings.warm_up)


def serve_heads(front: Front, rings: Rings) -> Predictor:
    """Has the server predict, or say that it does not."""
    metrics = HeadMetrics(front.registry)
    predictor = Predictor(rings, metrics)
    admission = TextAdmission(front.settings.max_predictions, metrics)
    front.work.texts = admission
    core = PredictCore(rings, predictor, admission, metrics)
    seconds = front.settings.default_deadline
    servicer = HeadServicer(core, seconds)
    head_pb2_grpc.add_HeadServiceServicer_to_server(servicer, front.server.grpc)
    if rings.all():
        front.calls.extend(predict_calls(core, seconds))
    return predictor


async def _rings(
    front: Front, encoders: Encoders, own: OpenEncoder, opening: HeadsOfRings
) -> Rings:
    name, settings = front.bundle.manifest.name, front.settings
    rings = [_ring(name, own, opening, settings.heads)]
    for further in settings.further_rings:
        bundle = await asyncio.to_thread(load_bundle, further.bundle)
        rings.append(_ring(further.name, encoders.open(bundle), opening, further.store))
    return Rings(rings)


def _ring(name: str, own: OpenEncoder, opening: HeadsOfRings, store: str) -> Ring:
    manifest = own.bundle.manifest
    most, opened = manifest.encoder.max_passage_tokens - _SPECIAL, opening.open(name, own, store)
    return Ring(
        name,
        manifest.states_fingerprint,
        own.tokenizer,
        own.encoder,
        most,
        opened.heads,
        opened.memory,
        opened.ahead,
    )
