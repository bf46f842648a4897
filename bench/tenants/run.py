"""Measures questions, memory and deletion of tenants that share a shard.

    python -m bench tenants [--small 750] [--large 1] [--questions 1000] [--whole 200]
        [--work DIRECTORY] [--without-deletion] [--archive N] [--json]

Builds a shard with many small tenants and some large ones, from passages that were made up: nothing
is encoded. An index of 10,000 tenants with 60 passages and 10 with 5,000 has 13 such shards, and a
question calls only one of them. Questions are drawn by Zipf over the tenants. Each one is retrieved
from the shared shard and, interleaved, from a shard that has only its tenant. Some questions of
each size are also encoded and read with the models of a bundle. Exact search is compared with
search of the graph, for tenants of several sizes.

Then every tenant asks once, to see what is kept for a tenant that has asked; questions are timed
after the system has dropped the files from its cache; and a large tenant is deleted from a copy of
the shard. Exits with 1 if a target is missed. With --work, shards are kept for the next run.

With --archive, a copy of the shard is archived N times instead, and a question restores it each
time.
"""

import argparse
import asyncio
import gc
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from bench.figures import (
    Figure,
    at_least,
    at_most,
    print_figures,
    quantile_figures,
    ratio_figure,
)
from bench.tenants.archive import archive_and_ask, drop_from_cache
from bench.tenants.bound import search_figures
from bench.tenants.collection import Collection, TenantPassages, build
from bench.tenants.deletion import delete_tenant
from bench.tenants.turns import take_turns
from bench.tenants.whole import WholeQuestions
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.content_node.shard.view import ShardView, view_of
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.tenant import own_id
from winnow.packaged import default_bundle

_SMALL, _LARGE = 60, 5_000
"""Passages of a tenant."""
_DEPTH = RetrievalDepth(passages=10, candidates=100, by_words=100)
"""As the default front asks for."""
_DENSE = RetrievalDepth(passages=10)
_WORD_WEIGHT = 0.01
_EF = 256
_ZIPF = 1.0
_WAKING = 20
"""Questions after which the files are dropped from the cache."""
_SEARCHES = 50
"""Questions of each size for the comparison of exact search with the graph."""
_MEMORY_TENANTS = 200
"""Tenants that ask before the memory is measured, so that what all share exists."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench tenants`."""
    parser.add_argument("--small", type=int, default=750, help="tenants with 60 passages")
    parser.add_argument("--large", type=int, default=1, help="tenants with 5,000 passages")
    parser.add_argument("--questions", type=int, default=1_000, help="number of questions")
    parser.add_argument(
        "--whole", type=int, default=200, help="questions of each size that are encoded and read"
    )
    parser.add_argument(
        "--bundle", type=Path, default=default_bundle(), help="bundle that encodes and reads"
    )
    parser.add_argument(
        "--work", type=Path, help="directory that keeps the shards; built again if it is empty"
    )
    parser.add_argument(
        "--without-deletion",
        action="store_true",
        help="skip the deletion of a tenant, whose merge builds a graph",
    )
    parser.add_argument("--archive", type=int, default=0, help="only archive the shard N times")
    parser.add_argument("--seed", type=int, default=1, help="seed of passages and questions")


def run(options: argparse.Namespace) -> int:
    """Prints the figures; returns 1 if a target is missed."""
    with tempfile.TemporaryDirectory() as temporary:
        kept = options.work or Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        figures = _measure(kept, Path(temporary), options)
    return print_figures(figures, as_json=options.json)


def _measure(kept: Path, temporary: Path, options: argparse.Namespace) -> list[Figure]:
    collection = Collection(options.seed)
    sizes = [_LARGE] * options.large + [_SMALL] * options.small
    tenants = [collection.tenant(f"t{number}", size) for number, size in enumerate(sizes)]
    name = f"{options.seed}-{options.large}-{options.small}"
    directory = build(kept / f"shared-{name}", tenants)
    if options.archive:
        copy = shutil.copytree(directory, temporary / "archived" / directory.name)
        chosen = tenants[::-1][: options.archive]
        return asyncio.run(archive_and_ask(copy, temporary / "archive", chosen, collection))
    shared = view_of(open_shard(directory, _EF))
    drawn = list(islice(collection.draw_by_zipf(len(tenants), _ZIPF), options.questions))
    alone = {
        number: view_of(open_shard(build(kept / f"alone-{name}-{number}", [tenants[number]]), _EF))
        for number in sorted(set(drawn))
    }
    asked = [(number, collection.question(tenants[number].name)) for number in drawn]
    groups = {
        "small": [each for each in asked if each[0] >= options.large],
        "large": [each for each in asked if each[0] < options.large],
    }
    figures: list[Figure] = []
    for group, own in groups.items():
        figures += _questions(group, shared, alone, own)
    if options.whole:
        whole = WholeQuestions(options.bundle, _DEPTH, _WORD_WEIGHT)
        for group, own in groups.items():
            figures += whole.figures(group, shared, alone, own[: options.whole])
    figures += [
        _recall(shared, tenants, asked),
        *search_figures(shared, [question for _, question in asked[:_SEARCHES]]),
        _memory(shared, tenants, collection),
        *_waking(shared, directory, tenants[::-1][:_WAKING], collection),
    ]
    if options.large and not options.without_deletion:
        copy = temporary / "deletion" / directory.name
        shutil.copytree(directory, copy)
        figures += asyncio.run(_deletion(copy, tenants[0]))
    return figures


def _questions(
    group: str,
    shared: ShardView,
    alone: dict[int, ShardView],
    asked: Sequence[tuple[int, EncodedQuestion]],
) -> Iterator[Figure]:
    """Retrieves each question from both shards, and compares the times."""
    if not asked:
        return
    seconds: dict[str, list[float]] = {"shared": [], "alone": []}
    processor: dict[str, list[float]] = {"shared": [], "alone": []}
    for name, view, question in take_turns(shared, alone, asked):
        started, used = time.perf_counter(), time.thread_time()
        _retrieve(view, question, _DEPTH)
        seconds[name].append(time.perf_counter() - started)
        processor[name].append(time.thread_time() - used)
    for name, own in seconds.items():
        yield from quantile_figures(group, f"retrieval, {name} shard", own, 0.5, 0.95)
    for name, own in processor.items():
        yield from quantile_figures(group, f"processor time, {name} shard", own, 0.5, 0.95)
    for name, times in (("time", seconds), ("processor time", processor)):
        for level in (0.5, 0.95):
            yield ratio_figure(
                group,
                f"{name} beside its own shard, p{level * 100:g}",
                times["shared"],
                times["alone"],
                level,
            )


def _retrieve(view: ShardView, question: EncodedQuestion, depth: RetrievalDepth) -> list[str]:
    own = view_of_tenant(view, question.tenant)
    return [each.passage_id for each in retrieve(own, question, depth, _WORD_WEIGHT).hits]


def _recall(
    shared: ShardView,
    tenants: Sequence[TenantPassages],
    asked: Sequence[tuple[int, EncodedQuestion]],
) -> Figure:
    """Compares the ten nearest passages with those of a comparison with every vector."""
    found = wanted = 0
    for number, question in asked:
        distances = ((tenants[number].vectors - question.vector) ** 2).sum(axis=1)
        exact = {f"p{row}" for row in np.argsort(distances, kind="stable")[:10].tolist()}
        hits = _retrieve(shared, question, _DENSE)[:10]
        found += len(exact & set(map(own_id, hits)))
        wanted += len(exact)
    return at_least(Figure("all", "recall@10 within the tenant", found / wanted), 1.0)


def _memory(shared: ShardView, tenants: Sequence[TenantPassages], collection: Collection) -> Figure:
    """Measures the memory that is kept for each tenant that has asked once."""
    first, others = tenants[:_MEMORY_TENANTS], tenants[_MEMORY_TENANTS:]
    for tenant in first:
        _retrieve(shared, collection.question(tenant.name), _DEPTH)
    questions = [collection.question(tenant.name) for tenant in others]
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for question in questions:
        _retrieve(shared, question, _DEPTH)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = max(after - before, 0) / max(len(others), 1)
    return at_most(Figure("all", "memory kept for a tenant that has asked", kept, "B"), 200)


def _waking(
    shared: ShardView,
    directory: Path,
    tenants: Sequence[TenantPassages],
    collection: Collection,
) -> Iterator[Figure]:
    """Times questions, with their passages, after the files were dropped from the cache."""
    seconds = []
    for tenant in tenants:
        question = collection.question(tenant.name)
        drop_from_cache(directory)
        started = time.perf_counter()
        own = view_of_tenant(shared, tenant.name)
        for hit in retrieve(own, question, _DEPTH, _WORD_WEIGHT).hits[:10]:
            own.load(hit.row)
        seconds.append(time.perf_counter() - started)
    median, slow = quantile_figures("waking", "first question, files not cached", seconds, 0.5, 1.0)
    yield at_most(median, 300)
    yield at_most(slow, 300)


async def _deletion(directory: Path, tenant: TenantPassages) -> list[Figure]:
    done = await delete_tenant(directory, tenant)
    return [
        Figure("deletion", "passages before", done.passages_before),
        at_most(Figure("deletion", "passages once the write returned", done.passages_after), 0),
        Figure("deletion", "write", done.seconds * 1e3, "ms"),
        Figure("deletion", "write, processor time", done.processor_seconds * 1e3, "ms"),
        Figure("deletion", "merge", done.merge_seconds, "s"),
        Figure("deletion", "files with a text before", done.files_before),
        at_most(Figure("deletion", "files with a text after the merge", done.files_after), 0),
    ]
