"""Row `many`: a thousand heads registered, two hundred of them asked for as a Zipf law has it."""

import json
import time
from pathlib import Path
from random import Random

from bench.common.figures import Figure, quantile, ratio
from bench.heads.house import House, house, served
from bench.heads.stores import head_ids
from winnow.bundle import Bundle
from winnow.cli.ladder import zipf
from winnow.cli.ladder.texts import Ids, made_up
from winnow.deadline import Deadline
from winnow.v1 import head_pb2

ROW = "many"
ACTIVE = 200
MOST = 1.3
_FITTING = 100
"""Heads that fit into the smaller budget."""
_DEADLINE = 30.0


async def many(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """Everything warm, in this process and by gRPC; then with room for half of the heads."""
    chance = Random(0)
    texts = made_up(2 * requests, chance)
    places = zipf.drawn(requests, zipf.shares(ACTIVE), chance)
    asked = [head_ids()[place] for place in places]
    with house(bundle, store) as inside:
        cold = [await _cold(inside, texts[0], head) for head in head_ids(ACTIVE)]
        found = [quantile(ROW, "cold load of a head", cold, 0.5)]
        found += await _warm(bundle, store, inside, texts, asked)
        each = inside.count("winnow_heads_memory_bytes") / ACTIVE
    return found + await _pressed(bundle, store, texts, asked, round(_FITTING * each))


async def _cold(inside: House, ids: Ids, head: str) -> float:
    states = inside.encoder.with_states(ids)[1]
    assert states is not None
    began = time.perf_counter()
    (applied,) = await inside.heads.apply(states, [head], Deadline.after(_DEADLINE))
    if applied.failure is not None:
        raise applied.failure
    return time.perf_counter() - began


async def _warm(
    bundle: Bundle, store: Path, inside: House, texts: list[Ids], asked: list[str]
) -> list[Figure]:
    """Bare encoder, head in process and head by gRPC in turn, on texts of the same lengths."""
    words = _words(bundle, texts)
    bare, here, there = list[float](), list[float](), list[float]()
    async with served(bundle, store) as stub:
        for head in dict.fromkeys(asked):
            request = head_pb2.PredictRequest(text="warm", head_ids=[head])
            await stub.Predict(request, timeout=_DEADLINE)
        for number, head in enumerate(asked):
            ids, text = texts[number], words[number]
            request = head_pb2.PredictRequest(text=text, head_ids=[head])
            began = time.perf_counter()
            inside.encoder.with_states(ids)
            bare.append(time.perf_counter() - began)
            began = time.perf_counter()
            await inside.predict(ids, [head], _DEADLINE)
            here.append(time.perf_counter() - began)
            began = time.perf_counter()
            await stub.Predict(request, timeout=_DEADLINE)
            there.append(time.perf_counter() - began)
    ways = {"bare encoder": bare, "in process": here, "by gRPC": there}
    found = [
        quantile(ROW, f"{name}, {ACTIVE} heads warm" if name != "bare encoder" else name, own, at)
        for name, own in ways.items()
        for at in (0.5, 0.9, 0.99)
    ]
    return [
        *found,
        ratio(ROW, "p90 in process, of the bare encoder's", here, bare, 0.9, MOST),
        ratio(ROW, "p90 by gRPC, of the bare encoder's", there, bare, 0.9),
    ]


async def _pressed(
    bundle: Bundle, store: Path, texts: list[Ids], asked: list[str], budget: int
) -> list[Figure]:
    """With a budget of memory that half of the heads fit into."""
    taken = list[float]()
    with house(bundle, store, budget) as inside:
        for ids, head in zip(texts, asked, strict=False):
            began = time.perf_counter()
            await inside.predict(ids, [head], _DEADLINE)
            taken.append(time.perf_counter() - began)
        loads = inside.count("winnow_heads_loads_total", result="loaded")
        evictions = inside.count("winnow_heads_evictions_total")
    room = f"room for {_FITTING}"
    return [
        *(quantile(ROW, f"in process, {room}", taken, at) for at in (0.5, 0.9, 0.99)),
        Figure(ROW, f"loads, {room}, of {len(asked)} requests", loads, ""),
        Figure(ROW, f"evictions, {room}", evictions, ""),
    ]


def _words(bundle: Bundle, texts: list[Ids]) -> list[str]:
    """Texts of as many tokens as these: each word of the vocabulary that is one is a token."""
    pieces = json.loads(bundle.tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    vocabulary = sorted(piece for piece in pieces if piece.isascii() and piece.isalpha())
    chance = Random(1)
    return [" ".join(chance.choices(vocabulary, k=len(ids))) for ids in texts]
