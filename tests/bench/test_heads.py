"""Figures of benchmarks, and the synthetic heads of `python -m bench heads`."""

import asyncio
import dataclasses
import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.figures import (
    Figure,
    at_most,
    format_line,
    print_figures,
    quantile_figure,
    ratio_figure,
)
from bench.heads import swap
from bench.heads.cache import measure_cache
from bench.heads.synthetic_heads import LABELS, constant_model, publish_head, trained_shape_model
from bench.interleaving import interleaved_latencies
from winnow.bundle import Bundle
from winnow.heads.head import open_head
from winnow.heads.store import open_store
from winnow.v1 import head_pb2


def test_a_ratio_is_the_median_over_blocks() -> None:
    """Other work on the machine slows down both variants of a block, or spoils one block only."""
    slow = [1.0] * 4 + [9.0] + [1.0] * 5
    figure = ratio_figure("group", "name", [2.0 * each for each in slow], slow, 0.5)
    assert (figure.value, figure.spread) == (2.0, (2.0, 2.0))
    assert at_most(figure, 1.5).holds is False
    spoilt = [1.0] * 8 + [50.0] * 2
    assert ratio_figure("group", "name", spoilt, [1.0] * 10, 0.5).value == 1.0


async def test_interleaved_variants_reverse_their_order_from_item_to_item() -> None:
    order: list[tuple[str, int]] = []

    async def note(name: str, item: int) -> None:
        order.append((name, item))

    variants = {name: partial(note, name) for name in "ab"}
    latencies = await interleaved_latencies(variants, [1, 2])
    assert order == [("a", 1), ("b", 1), ("b", 2), ("a", 2)]
    assert {name: len(own) for name, own in latencies.items()} == {"a": 2, "b": 2}


def test_a_quantile_is_in_milliseconds() -> None:
    figure = quantile_figure("group", "name", [0.001 * n for n in range(1, 12)], 0.5)
    assert figure.value == pytest.approx(6)
    assert (figure.name, figure.holds) == ("name, p50", None)
    assert "name, p50" in format_line(figure)


def test_figures_as_json_have_no_infinity_and_a_missed_target_fails_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missed = at_most(Figure("group", "name", 2.0, "times", spread=(1.0, math.inf)), 1)
    assert print_figures([missed], as_json=True) == 1
    out, err = capsys.readouterr()
    (printed,) = json.loads(out)
    assert printed["spread"] == [1.0, None]
    assert "missed target: group" in err
    assert print_figures([dataclasses.replace(missed, holds=None)], as_json=False) == 0


def test_a_head_in_the_shape_of_trained_ones_has_a_score_for_every_label(
    tmp_path: Path, bundle: Bundle
) -> None:
    store, width = open_store(tmp_path / "store"), bundle.manifest.encoder.dimension
    publish_head(
        store, bundle, "a", 1, [f"label-{n}" for n in range(LABELS)], trained_shape_model(width)
    )
    head = open_head(store.fetch("a", 1))
    assert head.manifest.model.bytes > 200_000


class Replies:
    """Returns replies in order; sets `finished` with the last one."""

    def __init__(self, finished: asyncio.Event, replies: list[tuple[int, str]]) -> None:
        self._finished, self._replies = finished, list(reversed(replies))

    async def Predict(self, request: Any, timeout: float) -> head_pb2.PredictResponse:
        version, label = self._replies.pop()
        if not self._replies:
            self._finished.set()
        head = head_pb2.HeadPrediction(head_id=swap.HEAD, version=version)
        if label:
            head.labels.add(label=label, score=1.0)
        else:
            head.failure = "broken"
        return head_pb2.PredictResponse(results=[head_pb2.TextPrediction(heads=[head])])


async def test_a_reply_that_mixes_two_versions_is_counted() -> None:
    finished, outcomes = asyncio.Event(), swap.Outcomes()
    replies: list[tuple[int, str]] = [
        (1, "version-1-label-1"),
        (5, "version-5-label-1"),
        (2, "version-1-label-1"),  # labels and weights of version 1
        (2, "version-2-label-1"),  # weights of version 1
        (2, ""),
    ]
    await swap._apply_until_finished(Replies(finished, replies), outcomes, finished, 0)  # type: ignore[arg-type]
    assert (outcomes.requests, outcomes.mixtures) == (5, 2)
    assert outcomes.failed == {"broken": 1}


def test_each_version_gives_its_own_label(tmp_path: Path, bundle: Bundle) -> None:
    store, width = open_store(tmp_path / "store"), bundle.manifest.encoder.dimension
    for version in (1, 2):
        publish_head(
            store, bundle, "a", version, ["x", "y", "z"], constant_model(width, 3, version)
        )
        head = open_head(store.fetch("a", version))
        assert head.logits(np.ones((4, width), np.float32)).argmax() == version


async def test_a_cache_sized_for_a_hit_rate_reaches_it(bundle: Bundle) -> None:
    figures = {each.name: each for each in await measure_cache(bundle, 20_000)}
    assert figures["cache for 40% hits: hits"].holds
    assert (
        figures["default cache of 64 MiB: hits"].value > figures["cache for 40% hits: hits"].value
    )
