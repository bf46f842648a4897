"""Puts a front node together and runs it."""

from functools import partial

from prometheus_client import CollectorRegistry

from winnow.rpc import process
from winnow.stateless.composing.answers import serve_answers
from winnow.stateless.composing.encoder_groups import open_encoder_groups, serve_heads
from winnow.stateless.composing.encoders import Encoders
from winnow.stateless.composing.feed import serve_feed
from winnow.stateless.composing.front import Part, opened, serve
from winnow.stateless.composing.http import serve_http
from winnow.stateless.composing.showing import serve_showing
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer


def run(settings: FrontSettings) -> None:
    """Answers questions until SIGTERM or SIGINT."""
    process.run(settings, partial(_run, settings))


async def _run(
    settings: FrontSettings, registry: CollectorRegistry, tracer: Tracer = NO_TRACER
) -> None:
    async with opened(settings, registry, tracer) as front:
        encoders = Encoders(front)
        own = encoders.open(front.bundle, settings.encoder_address)
        questions = QuestionEncoder(front.bundle, own.tokenizer, own.encoder)
        groups, predicting = await open_encoder_groups(front, encoders, own)
        predictor = serve_heads(front, groups)
        parts = [Part(questions.warm_up, encoders.followed), predicting]
        cluster = None
        if settings.shards:
            heads = QuestionHeads(predictor, groups.default, questions) if groups.all() else None
            cluster = serve_answers(front, questions, heads)
            parts.append(cluster.part)
            if settings.feed_listen:
                parts.append(await serve_feed(front, cluster))
        serve_showing(front, cluster, groups)
        if settings.http_listen:
            parts.append(serve_http(front))
        await serve(front, parts)
