"""A front node of the simulation, composed as `winnow.stateless` composes it."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from simulation.channel import SimulatedServer
from simulation.models import SimulatedTextEncoder, tokenizer_of
from winnow.bundle import Bundle
from winnow.rpc.interceptor import CallInterceptor
from winnow.security.from_settings import ServerSecurity
from winnow.security.peers import PLAIN_TEXT
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.composing.access import FrontAccess
from winnow.stateless.composing.answers import ConversionThreads, open_index
from winnow.stateless.composing.feed import FeedParts, open_feed
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.nodes import RemoteNodes
from winnow.stateless.early_rejection import EarlyRejection
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.metrics import FrontMetrics, ReadinessMetrics
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.metrics import RpcMetrics
from winnow.text.cached import CachedTextEncoder

PASSAGES_TO_READ = 3
ANSWERS = 3


@dataclass(slots=True)
class RunningFront:
    """A front that runs."""

    answers: AnswerCore
    feed: FeedCore
    registry: CollectorRegistry
    part: FrontPart
    """Its background tasks, which the caller starts."""


async def open_front(bundle: Bundle, addresses: Sequence[str]) -> RunningFront:
    """Composes a front over the nodes at some addresses."""
    registry = CollectorRegistry()
    settings = FrontSettings.model_validate(
        {
            "shards": list(addresses),
            "bundle": bundle.directory,
            "passages_to_read": PASSAGES_TO_READ,
            "answers": ANSWERS,
            "max_loss": 0,
            "retriever": "dense",
        }
    )
    server: Any = SimulatedServer()
    access: Any = FrontAccess(ServerSecurity(), PLAIN_TEXT)
    front = Front(
        settings=settings,
        bundle=bundle,
        registry=registry,
        metrics=FrontMetrics(registry),
        readiness=ReadinessMetrics(registry),
        runtimes=None,  # type: ignore[arg-type] # no model runs
        interceptor=CallInterceptor(RpcMetrics(registry)),
        services=server,
        server=None,
        rejection=EarlyRejection(),
        access=access,
        stack=contextlib.AsyncExitStack(),
    )
    encoder = QuestionEncoder(
        bundle, tokenizer_of(bundle.tokenizer), CachedTextEncoder(SimulatedTextEncoder(), 1 << 20)
    )
    source = RemoteNodes(front)
    index = open_index(front, source, encoder, None, ConversionThreads.open(front))
    shared = FeedParts(front, FeedMetrics(registry))
    fed = await open_feed(front, source, index.cluster, index.parts, shared)
    return RunningFront(index.parts.answers, fed.core, registry, index.cluster.part)
