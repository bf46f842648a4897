"""Compares exact search of a tenant with search of the graph that all tenants of a shard share."""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from bench.figures import Figure, quantile_figure
from winnow.content_node.shard.rows import RowList
from winnow.content_node.shard.view import ShardView
from winnow.domain.question import EncodedQuestion

_SIZES = (60, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000)
"""Passages of a tenant."""
_CANDIDATES, _TOP = 100, 10


def search_figures(shared: ShardView, questions: Sequence[EncodedQuestion]) -> Iterator[Figure]:
    """Searches ranges and scattered rows of the built segment, as if they were of one tenant."""
    segment = shared.segments[0].segment
    chance = np.random.default_rng(1)
    for size in _SIZES:
        if size > segment.rows:
            return
        first = int(chance.integers(segment.rows - size + 1))
        ways = {
            "range": RowList(np.arange(first, first + size)),
            "scattered": RowList(np.sort(chance.permutation(segment.rows)[:size])),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ("graph", *ways)}
        found = 0
        for question in questions:
            for name, rows in ways.items():
                began = time.thread_time()
                exact = segment.nearest(question.vector, _CANDIDATES, rows)
                seconds[name].append(time.thread_time() - began)
            mask = rows.mask(segment.rows)
            began = time.thread_time()
            near = segment.nearest(question.vector, _CANDIDATES, mask)
            seconds["graph"].append(time.thread_time() - began)
            best = {row for row, _ in exact[:_TOP]}
            found += len(best & {row for row, _ in near[:_TOP]})
        group = f"{size}"
        for name, own in seconds.items():
            how = "search with the graph" if name == "graph" else f"exact search, {name}"
            yield quantile_figure(group, f"{how}, processor time", own, 0.5)
        recall = found / (_TOP * len(questions))
        yield Figure(group, "recall@10 of the search with the graph", recall)
