"""Row `swap`: a head is replaced again and again while clients apply it."""

import asyncio
import itertools
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio

from bench.figures import Figure, at_least, at_most
from bench.heads.serving import served
from bench.heads.synthetic_heads import constant_head, publish
from winnow.bundle import Bundle
from winnow.heads.store import HeadStore, open_store
from winnow.v1 import head_pb2, head_pb2_grpc

HEAD = "changing"
_CLIENTS, _LABELS, _SWAPS, _TEXTS = 8, 4, 5, 50
_PAUSE = 1.0
"""Seconds between two versions."""
_DEADLINE = 5.0


@dataclass
class Outcomes:
    """Counts of the requests by their outcomes."""

    versions: Counter[int] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    mixtures: int = 0

    @property
    def requests(self) -> int:
        return self.versions.total() + self.failed.total()


async def swap(bundle: Bundle, requests: int) -> list[Figure]:
    """Runs clients until there were enough requests and enough versions."""
    seen, over = Outcomes(), asyncio.Event()
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(Path(directory) / "store")
        await asyncio.to_thread(_publish, store, bundle, 1)
        async with (
            served(bundle, Path(directory) / "store") as stub,
            asyncio.TaskGroup() as group,
        ):
            for number in range(_CLIENTS):
                group.create_task(_ask(stub, seen, over, number))
            group.create_task(_replace(store, bundle, seen, over, requests))
    return [
        at_least(Figure("swap", "requests", seen.requests), requests),
        at_least(Figure("swap", "versions seen", len(seen.versions)), 3),
        at_most(Figure("swap", f"failed{_reasons(seen)}", seen.failed.total()), 0),
        at_most(Figure("swap", "mixtures of two versions", seen.mixtures), 0),
    ]


async def _ask(
    stub: "head_pb2_grpc.HeadServiceAsyncStub", seen: Outcomes, over: asyncio.Event, number: int
) -> None:
    for text in itertools.cycle(range(number, number + _TEXTS)):
        if over.is_set():
            return
        request = head_pb2.PredictRequest(text=f"text number {text}", head_ids=[HEAD])
        try:
            reply = await stub.Predict(request, timeout=_DEADLINE)
        except grpc.aio.AioRpcError as error:
            seen.failed[error.code().name] += 1
            continue
        (head,) = reply.results[0].heads
        if head.failure:
            seen.failed[head.failure] += 1
            continue
        seen.versions[head.version] += 1
        # weights, labels and version must come from the same version
        seen.mixtures += head.labels[0].label != _label(head.version, head.version % _LABELS)


async def _replace(
    store: HeadStore, bundle: Bundle, seen: Outcomes, over: asyncio.Event, requests: int
) -> None:
    try:
        for version in itertools.count(2):
            await asyncio.sleep(_PAUSE)
            if seen.requests >= requests and len(seen.versions) > _SWAPS:
                return
            await asyncio.to_thread(_publish, store, bundle, version)
            if version > 60:
                return
    finally:
        over.set()


def _publish(store: HeadStore, bundle: Bundle, version: int) -> None:
    labels = [_label(version, place) for place in range(_LABELS)]
    model = constant_head(bundle.manifest.encoder.dimension, _LABELS, version % _LABELS)
    publish(store, bundle, HEAD, version, labels, model)


def _label(version: int, place: int) -> str:
    return f"version-{version}-label-{place}"


def _reasons(seen: Outcomes) -> str:
    reasons = ", ".join(f"{count} {reason}" for reason, count in seen.failed.most_common(3))
    return f" ({reasons})" if reasons else ""
