"""A front node of the simulation, composed as `winnow.stateless` composes it."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from simulation.channel import SimulatedServer
from simulation.models import SimulatedTextEncoder, tokenizer_of
from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.answered import Answered
from winnow.domain.question import AnswerRequest
from winnow.domain.write import Deletion, FedPassage, WriteResult
from winnow.rpc.interceptor import CallInterceptor
from winnow.security.from_settings import ServerSecurity
from winnow.security.peers import PLAIN_TEXT
from winnow.stateless.composing.access import FrontAccess
from winnow.stateless.composing.answers import ConversionThreads, open_index
from winnow.stateless.composing.feed import FeedParts, open_feed
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.nodes import RemoteNodes
from winnow.stateless.early_rejection import EarlyRejection
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.metrics import FrontMetrics, ReadinessMetrics
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.labelled import LabelledRegistries
from winnow.telemetry.metrics import RpcMetrics
from winnow.text.cached import CachedTextEncoder

PASSAGES_TO_READ = 3
ANSWERS = 3


class Answers(Protocol):
    """Answers questions: `AnswerCore`, or `IndexedAnswers` of several indexes."""

    async def answer(self, request: AnswerRequest, deadline: Deadline) -> Answered:
        """Answers a request."""


class Feed(Protocol):
    """Takes writes: `FeedCore`, or `NamedFeed` of several indexes."""

    async def put(self, passages: Sequence[FedPassage], deadline: Deadline) -> list[WriteResult]:
        """Stores passages."""

    async def delete(self, deletions: Sequence[Deletion], deadline: Deadline) -> list[WriteResult]:
        """Deletes passages."""


@dataclass(slots=True)
class RunningFront:
    """A front that runs."""

    answers: Answers
    feed: Feed
    registry: CollectorRegistry
    part: FrontPart
    """Its background tasks, which the caller starts."""


async def open_front(bundle: Bundle, addresses: Sequence[str]) -> RunningFront:
    """Composes a front over the nodes at some addresses."""
    front = shared_parts(bundle, addresses)
    encoder = QuestionEncoder(
        bundle,
        tokenizer_of(bundle.tokenizer),
        CachedTextEncoder(SimulatedTextEncoder(bundle), 1 << 20),
    )
    source = RemoteNodes(front)
    index = open_index(front, source, encoder, None, ConversionThreads.open(front))
    shared = FeedParts(front, FeedMetrics(front.registry))
    fed = await open_feed(front, source, index.cluster, index.parts, shared)
    return RunningFront(index.parts.answers, fed.core, front.registry, index.cluster.part)


def shared_parts(bundle: Bundle, addresses: Sequence[str], **settings_of_front: Any) -> Front:
    """Returns what all parts of a front share. Further settings may be given by their names."""
    registry = CollectorRegistry()
    settings = FrontSettings.model_validate(
        {
            "shards": list(addresses),
            "bundle": bundle.directory,
            "passages_to_read": PASSAGES_TO_READ,
            "answers": ANSWERS,
            "max_loss": 0,
            "retriever": "dense",
            **settings_of_front,
        }
    )
    interceptor = CallInterceptor(RpcMetrics(registry))
    server: Any = SimulatedServer(interceptor)
    access: Any = FrontAccess(ServerSecurity(), PLAIN_TEXT)
    return Front(
        settings=settings,
        bundle=bundle,
        registry=registry,
        metrics=FrontMetrics(registry),
        readiness=ReadinessMetrics(registry),
        runtimes=None,  # type: ignore[arg-type] # no model runs
        interceptor=interceptor,
        services=server,
        server=None,
        rejection=EarlyRejection(),
        access=access,
        stack=contextlib.AsyncExitStack(),
        by_index=LabelledRegistries(registry, "index") if settings.indexes else None,
    )
