"""Compares the start of a node with many shards and of one with the same passages in one shard.

    python -m bench starting --work DIR [--passages 400000] [--shards 20] [--json]

The passages are synthetic, with vectors of the default bundle's size. The indexes are built in
--work and kept there. The two nodes start in turn, and the time is from the start of the process
to the moment at which its health service reports SERVING.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.figures import at_most, print_figures, quantile_figures, ratio_figure
from bench.interleaving import interleaved
from bench.synthetic import SyntheticEncoder
from winnow.bundle import load_bundle
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, write_shard
from winnow.domain.write import Write
from winnow.packaged import default_bundle

_ROUNDS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench starting`."""
    parser.add_argument("--work", type=Path, required=True, help="directory of the indexes")
    parser.add_argument("--passages", type=int, default=400_000, help="passages of each index")
    parser.add_argument("--shards", type=int, default=20, help="shards of the divided index")
    parser.add_argument("--port", type=int, default=29471, help="free port of the nodes")


def run(options: argparse.Namespace) -> int:
    """Measures and prints the figures; returns the exit code."""
    counts = {f"{options.shards} shards": options.shards, "one shard": 1}
    for shards in counts.values():
        _build(options.work, shards, options.passages)
    seconds: dict[str, list[float]] = {name: [] for name in counts}
    for number, (name, _) in enumerate(interleaved(list(counts), range(_ROUNDS + 1))):
        started = _start(options.work / str(counts[name]), options.port)
        if number >= len(counts):  # the first ones read the files into memory
            seconds[name].append(started)
    many, one = seconds.values()
    figures = []
    for name, each in seconds.items():
        figures += quantile_figures("start", name, each, 0.5)
    ratio = ratio_figure("start", "ratio, p50", many, one, 0.5)
    return print_figures([*figures, at_most(ratio, 1.3)], as_json=options.json)


def _build(work: Path, shards: int, passages: int) -> None:
    directory = work / str(shards)
    if directory.exists():
        return
    work.mkdir(parents=True, exist_ok=True)
    bundle = load_bundle(default_bundle()).manifest
    encoder = SyntheticEncoder(dimension=384, vocabulary=30_000)
    staging = Staging(work / f"staging-{shards}.sqlite")
    for number in range(passages):
        words = " ".join(f"w{(number * 7919 + n * n) % 50_000}" for n in range(20))
        text = f"passage {number} {words}"
        staging.add(Write(f"id-{number}", None, encoder.passage(f"id-{number}", text)))
        if number % 20_000 == 0:
            print(f"{shards} shards: {number:,} of {passages:,} passages", file=sys.stderr)
    staging.partition(shards)
    staging.record(written=True)
    identity = ShardSetIdentity(
        index_id=f"start{shards}",
        shards=shards,
        dimension=384,
        bundle_name=bundle.name,
        encoding_fingerprint=bundle.encoding_fingerprint,
        passages=passages,
        words=count_words(staging.passage_tokens()),
    )
    staging.close()
    building = work / f"building-{shards}"
    building.mkdir(exist_ok=True)
    for shard in range(shards):
        print(f"{shards} shards: graph {shard}", file=sys.stderr)
        write_shard(staging.path, building, shard, identity, GraphPlan(ef_construction=40))
    staging.path.unlink()
    building.rename(directory)


def _start(index: Path, port: int) -> float:
    """Seconds until a node with this index serves."""
    address = f"127.0.0.1:{port}"
    command = ["-m", "winnow", "node", "--shards", str(index), "--listen", address]
    started = time.perf_counter()
    node = subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
    try:
        with grpc.insecure_channel(address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            request = health_pb2.HealthCheckRequest()
            serving = health_pb2.HealthCheckResponse.SERVING
            while health.Check(request, wait_for_ready=True, timeout=300).status != serving:
                time.sleep(0.02)
        return time.perf_counter() - started
    finally:
        node.kill()
        node.wait()
