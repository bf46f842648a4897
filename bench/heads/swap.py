"""Part `swap`: publishes new versions of a head while clients apply it."""

import asyncio
import itertools
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio

from bench.figures import Figure, at_least, at_most
from bench.heads.serving import front_serving_heads
from bench.heads.synthetic_heads import constant_model, publish_head
from winnow.bundle import Bundle
from winnow.heads.store import HeadStore, open_store
from winnow.v1 import head_pb2, head_pb2_grpc

HEAD = "changing"
_CLIENTS, _LABEL_COUNT, _SWAPS, _TEXTS = 8, 4, 5, 50
_PUBLISH_INTERVAL = 1.0
"""Seconds between the publication of two versions."""
_DEADLINE = 5.0


@dataclass
class Outcomes:
    """Counts of requests by outcome."""

    versions: Counter[int] = field(default_factory=Counter)
    """Successful requests by version of the head."""
    failed: Counter[str] = field(default_factory=Counter)
    """Failed requests by reason."""
    mixtures: int = 0
    """Number of replies that mix weights, labels or version numbers of two versions."""

    @property
    def requests(self) -> int:
        return self.versions.total() + self.failed.total()


async def measure_swap(bundle: Bundle, requests: int) -> list[Figure]:
    """Runs clients until they sent `requests` requests and saw more than `_SWAPS` versions."""
    outcomes, finished = Outcomes(), asyncio.Event()
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(Path(directory) / "store")
        await asyncio.to_thread(_publish, store, bundle, 1)
        async with (
            front_serving_heads(bundle, Path(directory) / "store") as stub,
            asyncio.TaskGroup() as group,
        ):
            for number in range(_CLIENTS):
                group.create_task(_apply_until_finished(stub, outcomes, finished, number))
            group.create_task(_publish_versions(store, bundle, outcomes, finished, requests))
    return [
        at_least(Figure("swap", "requests", outcomes.requests), requests),
        at_least(Figure("swap", "versions seen", len(outcomes.versions)), 3),
        at_most(Figure("swap", f"failed{_reasons(outcomes)}", outcomes.failed.total()), 0),
        at_most(Figure("swap", "mixtures of two versions", outcomes.mixtures), 0),
    ]


async def _apply_until_finished(
    stub: "head_pb2_grpc.HeadServiceAsyncStub",
    outcomes: Outcomes,
    finished: asyncio.Event,
    number: int,
) -> None:
    for text in itertools.cycle(range(number, number + _TEXTS)):
        if finished.is_set():
            return
        request = head_pb2.PredictRequest(text=f"text number {text}", head_ids=[HEAD])
        try:
            reply = await stub.Predict(request, timeout=_DEADLINE)
        except grpc.aio.AioRpcError as error:
            outcomes.failed[error.code().name] += 1
            continue
        (head,) = reply.results[0].heads
        if head.failure:
            outcomes.failed[head.failure] += 1
            continue
        outcomes.versions[head.version] += 1
        # weights, labels and version must come from the same version
        outcomes.mixtures += head.labels[0].label != _label(
            head.version, head.version % _LABEL_COUNT
        )


async def _publish_versions(
    store: HeadStore, bundle: Bundle, outcomes: Outcomes, finished: asyncio.Event, requests: int
) -> None:
    try:
        for version in itertools.count(2):
            await asyncio.sleep(_PUBLISH_INTERVAL)
            if outcomes.requests >= requests and len(outcomes.versions) > _SWAPS:
                return
            await asyncio.to_thread(_publish, store, bundle, version)
            if version > 60:
                return
    finally:
        finished.set()


def _publish(store: HeadStore, bundle: Bundle, version: int) -> None:
    labels = [_label(version, index) for index in range(_LABEL_COUNT)]
    model = constant_model(bundle.manifest.encoder.dimension, _LABEL_COUNT, version % _LABEL_COUNT)
    publish_head(store, bundle, HEAD, version, labels, model)


def _label(version: int, index: int) -> str:
    return f"version-{version}-label-{index}"


def _reasons(outcomes: Outcomes) -> str:
    reasons = ", ".join(f"{count} {reason}" for reason, count in outcomes.failed.most_common(3))
    return f" ({reasons})" if reasons else ""
