"""Part `many`: 200 active heads in a store of a thousand. Part `ten`: ten heads on one text."""

import json
import time
from pathlib import Path
from random import Random

from bench.figures import Figure, at_most, quantile_figure, quantile_figures, ratio_figure
from bench.heads.serving import DEADLINE, LocalPredictor, front_serving_heads, local_predictor
from bench.heads.synthetic_heads import head_ids
from bench.interleaving import interleaved_latencies
from winnow.bundle import Bundle
from winnow.cli.ladder import zipf
from winnow.cli.ladder.texts import Ids, synthetic_texts
from winnow.deadline import Deadline
from winnow.v1 import head_pb2

ACTIVE_HEADS = 200
MAX_RATIO = 1.3
_FITTING_HEADS = 100
"""Number of heads that fit into the smaller memory budget."""
_TEN_HEADS = 10


async def measure_many(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """Measures heads in this process and over gRPC, then with memory for only half of the heads."""
    rng = Random(0)
    texts = synthetic_texts(2 * requests, rng)
    head_indexes = zipf.draw_texts(requests, zipf.shares(ACTIVE_HEADS), rng)
    heads = [head_ids()[index] for index in head_indexes]
    with local_predictor(bundle, store) as predictor:
        cold = [await _time_cold_load(predictor, texts[0], head) for head in head_ids(ACTIVE_HEADS)]
        figures = [quantile_figure("many", "cold load of a head", cold, 0.5)]
        figures += await _measure_warm(bundle, store, predictor, texts, heads)
        head_bytes = predictor.count("winnow_heads_memory_bytes") / ACTIVE_HEADS
    return figures + await _measure_small_budget(
        bundle, store, texts, heads, round(_FITTING_HEADS * head_bytes)
    )


async def measure_ten(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """Compares the latency of ten heads on a text with that of one head."""
    texts, ids = synthetic_texts(requests, Random(0)), head_ids(_TEN_HEADS)
    with local_predictor(bundle, store) as predictor:
        await predictor.predict(texts[0], ids)
        variants = {
            "one head on a text": lambda text: predictor.predict(text, ids[:1]),
            "ten heads on a text": lambda text: predictor.predict(text, ids),
        }
        latencies = await interleaved_latencies(variants, texts)
    one, ten = latencies.values()
    return [
        *(quantile_figure("ten", name, seconds, 0.5) for name, seconds in latencies.items()),
        at_most(ratio_figure("ten", "ten heads / one head", ten, one, 0.5), MAX_RATIO),
    ]


async def _time_cold_load(predictor: LocalPredictor, ids: Ids, head: str) -> float:
    states = predictor.encoder.with_states(ids)[1]
    assert states is not None
    started = time.perf_counter()
    (applied,) = await predictor.heads.apply(states, [head], Deadline.after(DEADLINE))
    if applied.failure is not None:
        raise applied.failure
    return time.perf_counter() - started


async def _measure_warm(
    bundle: Bundle, store: Path, predictor: LocalPredictor, texts: list[Ids], heads: list[str]
) -> list[Figure]:
    """Compares the bare encoder, a head in this process, and a head over gRPC.

    Texts have equally many tokens. Heads are in memory.
    """
    random_texts = _texts_of_equal_length(bundle, texts)
    async with front_serving_heads(bundle, store) as stub:
        for head in dict.fromkeys(heads):
            request = head_pb2.PredictRequest(text="warm", head_ids=[head])
            await stub.Predict(request, timeout=DEADLINE)

        async def encode_only(number: int) -> None:
            predictor.encoder.with_states(texts[number])

        async def predict_here(number: int) -> None:
            await predictor.predict(texts[number], [heads[number]])

        async def predict_by_grpc(number: int) -> None:
            request = head_pb2.PredictRequest(text=random_texts[number], head_ids=[heads[number]])
            await stub.Predict(request, timeout=DEADLINE)

        variants = {
            "bare encoder": encode_only,
            f"in process, {ACTIVE_HEADS} heads warm": predict_here,
            f"by gRPC, {ACTIVE_HEADS} heads warm": predict_by_grpc,
        }
        latencies = await interleaved_latencies(variants, range(len(heads)))
    bare, local, remote = latencies.values()
    local_ratio = ratio_figure("many", "p90 in process / bare encoder", local, bare, 0.9)
    figures = [
        figure
        for name, seconds in latencies.items()
        for figure in quantile_figures("many", name, seconds, 0.5, 0.9, 0.99)
    ]
    return [
        *figures,
        at_most(local_ratio, MAX_RATIO),
        ratio_figure("many", "p90 by gRPC / bare encoder", remote, bare, 0.9),
    ]


async def _measure_small_budget(
    bundle: Bundle, store: Path, texts: list[Ids], heads: list[str], budget: int
) -> list[Figure]:
    """Measures heads with a memory budget of `budget` bytes, which holds half of the heads."""
    latencies = list[float]()
    with local_predictor(bundle, store, budget) as predictor:
        for ids, head in zip(texts, heads, strict=False):
            started = time.perf_counter()
            await predictor.predict(ids, [head])
            latencies.append(time.perf_counter() - started)
        loads = predictor.count("winnow_heads_loads_total", result="loaded")
        evictions = predictor.count("winnow_heads_evictions_total")
    label = f"room for {_FITTING_HEADS}"
    return [
        *quantile_figures("many", f"in process, {label}", latencies, 0.5, 0.9, 0.99),
        Figure("many", f"loads, {label}, of {len(heads)} requests", loads),
        Figure("many", f"evictions, {label}", evictions),
    ]


def _texts_of_equal_length(bundle: Bundle, texts: list[Ids]) -> list[str]:
    """Returns random texts with the token counts of `texts`. Each word is one token."""
    pieces = json.loads(bundle.tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    vocabulary = sorted(piece for piece in pieces if piece.isascii() and piece.isalpha())
    rng = Random(1)
    return [" ".join(rng.choices(vocabulary, k=len(ids))) for ids in texts]
