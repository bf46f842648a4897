"""Opens the encoder groups of a front, and adds the head service to it."""

import asyncio
from collections.abc import Callable

from winnow.bundle import load_bundle
from winnow.heads.admission import TextAdmission
from winnow.stateless.composing.encoders import Encoders, OpenEncoder
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.local_heads import LocalHeadsOpener, OpenHeads
from winnow.stateless.composing.placed_heads import PlacedHeadsOpener
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.encoder_groups import EncoderGroup, EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictor import Predictor
from winnow.stateless.heads.servicer import HeadServicer
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.predictions import predict_operations
from winnow.stateless.supervision import BackgroundTasks
from winnow.text.encoder import SPECIAL_TOKENS
from winnow.v1 import head_pb2_grpc


async def open_encoder_groups(
    front: Front, encoders: Encoders, default: OpenEncoder
) -> tuple[EncoderGroups, FrontPart]:
    """Opens all encoder groups. The default group uses the encoder of questions, `default`."""
    if not front.settings.serves_heads:
        return EncoderGroups(), FrontPart()
    tasks: BackgroundTasks = {}
    open_heads: Callable[[str, OpenEncoder, str], OpenHeads]
    if front.settings.head_servers:
        placed = PlacedHeadsOpener(front)
        tasks, open_heads = {"head servers": placed.follow}, placed.open
    else:
        open_heads = LocalHeadsOpener(front).open
    name, settings = front.bundle.manifest.name, front.settings
    groups = [_open_group(name, default, open_heads(name, default, settings.heads))]
    for setting in settings.further_groups:
        bundle = await asyncio.to_thread(load_bundle, setting.bundle)
        encoder = encoders.open(bundle)
        heads = open_heads(setting.name, encoder, setting.store)
        groups.append(_open_group(setting.name, encoder, heads))
    opened = EncoderGroups(groups)
    return opened, FrontPart(opened.warm_up, tasks)


def serve_heads(front: Front, groups: EncoderGroups) -> Predictor:
    """Adds the head service to the front. Without groups the service refuses all requests."""
    metrics, limits = HeadMetrics(front.registry), OperationLimits(front.settings.default_deadline)
    predictor = Predictor(groups, metrics)
    admission = TextAdmission(front.settings.max_predictions, metrics)
    front.work.texts = admission
    core = PredictCore(groups, predictor, admission, metrics)
    servicer = HeadServicer(core, limits.default_deadline)
    head_pb2_grpc.add_HeadServiceServicer_to_server(servicer, front.services)
    if groups.all():
        front.http_operations.extend(predict_operations(core, limits))
    return predictor


def _open_group(name: str, encoder: OpenEncoder, heads: OpenHeads) -> EncoderGroup:
    manifest = encoder.bundle.manifest
    return EncoderGroup(
        name,
        manifest.states_fingerprint,
        tokenizer=encoder.tokenizer,
        encoder=encoder.encoder,
        max_tokens=manifest.encoder.max_passage_tokens - SPECIAL_TOKENS,
        heads=heads.heads,
        memory=heads.memory,
        begin_run=heads.begin_run,
    )
