"""Rows `many` and `ten`: a thousand heads of which 200 are in use, and ten heads on one text."""

import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

from bench.figures import Figure, at_most, quantile, ratio
from bench.heads.serving import DEADLINE, InProcess, in_process, served
from bench.heads.synthetic_heads import head_ids
from bench.interleaving import interleaved
from winnow.bundle import Bundle
from winnow.cli.ladder import zipf
from winnow.cli.ladder.texts import Ids, made_up
from winnow.deadline import Deadline
from winnow.v1 import head_pb2

ACTIVE = 200
MOST = 1.3
_FITTING = 100
"""Heads that fit into the smaller budget."""
_TEN = 10


async def many(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """Measures warm heads, in this process and by gRPC, and then with room for half of them."""
    chance = Random(0)
    texts = made_up(2 * requests, chance)
    places = zipf.drawn(requests, zipf.shares(ACTIVE), chance)
    heads = [head_ids()[place] for place in places]
    with in_process(bundle, store) as inside:
        cold = [await _cold(inside, texts[0], head) for head in head_ids(ACTIVE)]
        found = [quantile("many", "cold load of a head", cold, 0.5)]
        found += await _warm(bundle, store, inside, texts, heads)
        each = inside.count("winnow_heads_memory_bytes") / ACTIVE
    return found + await _pressed(bundle, store, texts, heads, round(_FITTING * each))


async def ten(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """Measures ten heads on a text against one head."""
    texts, ids = made_up(requests, Random(0)), head_ids(_TEN)
    taken: dict[int, list[float]] = {1: [], _TEN: []}
    with in_process(bundle, store) as inside:
        await inside.predict(texts[0], ids)
        for number, text in interleaved(list(taken), texts):
            began = time.perf_counter()
            await inside.predict(text, ids[:number])
            taken[number].append(time.perf_counter() - began)
    return [
        quantile("ten", "one head on a text", taken[1], 0.5),
        quantile("ten", "ten heads on a text", taken[_TEN], 0.5),
        at_most(ratio("ten", "ten heads, of one", taken[_TEN], taken[1], 0.5), MOST),
    ]


async def _cold(inside: InProcess, ids: Ids, head: str) -> float:
    states = inside.encoder.with_states(ids)[1]
    assert states is not None
    began = time.perf_counter()
    (applied,) = await inside.heads.apply(states, [head], Deadline.after(DEADLINE))
    if applied.failure is not None:
        raise applied.failure
    return time.perf_counter() - began


async def _warm(
    bundle: Bundle, store: Path, inside: InProcess, texts: list[Ids], heads: list[str]
) -> list[Figure]:
    """Compares the bare encoder, a head in process and a head by gRPC, on texts of equal length."""
    words = _words(bundle, texts)
    async with served(bundle, store) as stub:
        for head in dict.fromkeys(heads):
            request = head_pb2.PredictRequest(text="warm", head_ids=[head])
            await stub.Predict(request, timeout=DEADLINE)

        async def bare(number: int) -> None:
            inside.encoder.with_states(texts[number])

        async def local(number: int) -> None:
            await inside.predict(texts[number], [heads[number]])

        async def remote(number: int) -> None:
            request = head_pb2.PredictRequest(text=words[number], head_ids=[heads[number]])
            await stub.Predict(request, timeout=DEADLINE)

        ways: list[Callable[[int], Awaitable[None]]] = [bare, local, remote]
        taken: dict[Callable[[int], Awaitable[None]], list[float]] = {way: [] for way in ways}
        for way, number in interleaved(ways, range(len(heads))):
            began = time.perf_counter()
            await way(number)
            taken[way].append(time.perf_counter() - began)
    named = {
        "bare encoder": bare,
        f"in process, {ACTIVE} heads warm": local,
        f"by gRPC, {ACTIVE} heads warm": remote,
    }
    local_ratio = ratio(
        "many", "p90 in process, of the bare encoder's", taken[local], taken[bare], 0.9
    )
    return [
        *(
            quantile("many", name, taken[way], share)
            for name, way in named.items()
            for share in (0.5, 0.9, 0.99)
        ),
        at_most(local_ratio, MOST),
        ratio("many", "p90 by gRPC, of the bare encoder's", taken[remote], taken[bare], 0.9),
    ]


async def _pressed(
    bundle: Bundle, store: Path, texts: list[Ids], heads: list[str], budget: int
) -> list[Figure]:
    """Measures heads with a budget of memory into which half of them fit."""
    taken = list[float]()
    with in_process(bundle, store, budget) as inside:
        for ids, head in zip(texts, heads, strict=False):
            began = time.perf_counter()
            await inside.predict(ids, [head])
            taken.append(time.perf_counter() - began)
        loads = inside.count("winnow_heads_loads_total", result="loaded")
        evictions = inside.count("winnow_heads_evictions_total")
    room = f"room for {_FITTING}"
    return [
        *(quantile("many", f"in process, {room}", taken, share) for share in (0.5, 0.9, 0.99)),
        Figure("many", f"loads, {room}, of {len(heads)} requests", loads),
        Figure("many", f"evictions, {room}", evictions),
    ]


def _words(bundle: Bundle, texts: list[Ids]) -> list[str]:
    """Returns random texts of the same token counts as `texts`. Each word is one token."""
    pieces = json.loads(bundle.tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    vocabulary = sorted(piece for piece in pieces if piece.isascii() and piece.isalpha())
    chance = Random(1)
    return [" ".join(chance.choices(vocabulary, k=len(ids))) for ids in texts]
