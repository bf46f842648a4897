"""Row `swap`: a head is replaced again and again while it is asked for."""

import asyncio
import itertools
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio

from bench.common.figures import Figure
from bench.heads.house import served
from bench.heads.models import publish, saying
from winnow.bundle import Bundle
from winnow.heads.store import HeadStore, open_store
from winnow.v1 import head_pb2, head_pb2_grpc

ROW = "swap"
HEAD = "changing"
_CLIENTS, _LABELS, _SWAPS, _TEXTS = 8, 4, 5, 50
_PAUSE = 1.0
"""Seconds between two versions."""
_DEADLINE = 5.0


@dataclass
class _Seen:
    """What became of the requests."""

    versions: Counter[int] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    mixtures: int = 0

    @property
    def requests(self) -> int:
        return self.versions.total() + self.failed.total()


async def swap(bundle: Bundle, requests: int) -> list[Figure]:
    """Clients ask until there were enough requests and versions, whichever comes last."""
    seen, over = _Seen(), asyncio.Event()
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
        Figure(ROW, "requests", seen.requests, "", wanted=f"at least {requests}",
               holds=seen.requests >= requests),
        Figure(ROW, "versions seen", len(seen.versions), "", wanted="more than 2",
               holds=len(seen.versions) > 2),
        Figure(ROW, f"failed{_why(seen)}", seen.failed.total(), "", wanted="0",
               holds=not seen.failed),
        Figure(ROW, "mixtures of two versions", seen.mixtures, "", wanted="0",
               holds=not seen.mixtures),
    ]  # fmt: skip


async def _ask(
    stub: "head_pb2_grpc.HeadServiceAsyncStub", seen: _Seen, over: asyncio.Event, number: int
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
        (said,) = reply.results[0].heads
        if said.failure:
            seen.failed[said.failure] += 1
            continue
        seen.versions[said.version] += 1
        # weights, labels and version have to be of one and the same head
        seen.mixtures += said.labels[0].label != _label(said.version, said.version % _LABELS)


async def _replace(
    store: HeadStore, bundle: Bundle, seen: _Seen, over: asyncio.Event, requests: int
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
    model = saying(bundle.manifest.encoder.dimension, _LABELS, version % _LABELS)
    publish(store, bundle, HEAD, version, labels, model)


def _label(version: int, place: int) -> str:
    return f"version-{version}-label-{place}"


def _why(seen: _Seen) -> str:
    said = ", ".join(f"{count} {why}" for why, count in seen.failed.most_common(3))
    return f" ({said})" if said else ""
