"""Opens the encoder groups of a front, and has its server predict."""

import asyncio

from winnow.bundle import load_bundle
from winnow.heads.admission import TextAdmission
from winnow.stateless.composing.encoders import Encoders, OpenEncoder
from winnow.stateless.composing.front import Front, Part
from winnow.stateless.composing.local_heads import LocalHeadsOpener
from winnow.stateless.composing.open_heads import HeadsOpener
from winnow.stateless.composing.placed_heads import PlacedHeadsOpener
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.encoder_groups import EncoderGroup, EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictor import Predictor
from winnow.stateless.heads.servicer import HeadServicer
from winnow.stateless.http.predictions import predict_calls
from winnow.v1 import head_pb2_grpc

_SPECIAL = 2
"""Tokens that frame a text."""


async def open_encoder_groups(
    front: Front, encoders: Encoders, own: OpenEncoder
) -> tuple[EncoderGroups, Part]:
    """The default encoder group, on the encoder of questions, and all further ones."""
    if not front.settings.serves_heads:
        return EncoderGroups(), Part()
    if front.settings.head_servers:
        placed = PlacedHeadsOpener(front)
        groups = await _groups(front, encoders, own, placed)
        return groups, Part(groups.warm_up, {"head servers": placed.follow})
    groups = await _groups(front, encoders, own, LocalHeadsOpener(front))
    return groups, Part(groups.warm_up)


def serve_heads(front: Front, groups: EncoderGroups) -> Predictor:
    """Has the server predict, or say that it does not."""
    metrics = HeadMetrics(front.registry)
    predictor = Predictor(groups, metrics)
    admission = TextAdmission(front.settings.max_predictions, metrics)
    front.work.texts = admission
    core = PredictCore(groups, predictor, admission, metrics)
    seconds = front.settings.default_deadline
    servicer = HeadServicer(core, seconds)
    head_pb2_grpc.add_HeadServiceServicer_to_server(servicer, front.server.grpc)
    if groups.all():
        front.calls.extend(predict_calls(core, seconds))
    return predictor


async def _groups(
    front: Front, encoders: Encoders, own: OpenEncoder, opening: HeadsOpener
) -> EncoderGroups:
    name, settings = front.bundle.manifest.name, front.settings
    groups = [_group(name, own, opening, settings.heads)]
    for further in settings.further_groups:
        bundle = await asyncio.to_thread(load_bundle, further.bundle)
        groups.append(_group(further.name, encoders.open(bundle), opening, further.store))
    return EncoderGroups(groups)


def _group(name: str, own: OpenEncoder, opening: HeadsOpener, store: str) -> EncoderGroup:
    manifest = own.bundle.manifest
    most, opened = manifest.encoder.max_passage_tokens - _SPECIAL, opening.open(name, own, store)
    return EncoderGroup(
        name,
        manifest.states_fingerprint,
        tokenizer=own.tokenizer,
        encoder=own.encoder,
        most_tokens=most,
        heads=opened.heads,
        memory=opened.memory,
        ahead=opened.ahead,
    )
