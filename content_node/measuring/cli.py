"""`winnow index measure`."""

import statistics
from typing import Annotated

import typer

from winnow.bundle import load_bundle
from winnow.content_node.measuring import read_costs, shard_costs
from winnow.content_node.measuring.synthetic import RandomVectors
from winnow.packaged import default_bundle
from winnow.passages.encoding import tokenise
from winnow.settings.common import cores
from winnow.sizing.synthetic import synthetic_passages, synthetic_questions
from winnow.sizing.units import GraphCost, NodeUnits, ShardCost
from winnow.telemetry.progress import StageProgress
from winnow.text.tokenizer import Tokenizer

PASSAGES = [10_000, 40_000]
OTHER_DIMENSION = 768


def measure(
    passages: Annotated[
        list[int] | None,
        typer.Option(
            min=2_000,
            max=10_000_000,
            help="Number of passages of a synthetic shard to measure. Give at least two sizes.",
            show_default=" ".join(map(str, PASSAGES)),
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, help="Threads for reading and building.", show_default="cores"
        ),
    ] = None,
) -> None:
    """Measure the costs of a content node on this machine: reading, retrieval, memory and disk.

    The shards have demo passages and random vectors, and are removed afterwards. Prints JSON,
    which is a part of the file that `winnow bench unit-costs` writes.
    """
    sizes = sorted(set(passages or PASSAGES))
    bundle, threads = load_bundle(default_bundle()), threads or cores()
    tokenizer = Tokenizer(bundle.tokenizer)
    texts = list(tokenise(tokenizer, synthetic_passages()))
    questions = [tokens.ids for tokens in tokenizer.tokenise_many(synthetic_questions())]
    dimension = bundle.manifest.encoder.dimension
    shards: list[shard_costs.MeasuredShard] = []
    graphs: list[GraphCost] = []
    with StageProgress() as progress:
        progress.start("reading passages of several lengths", 1)
        reads = read_costs.measure_reads(bundle, threads)
        progress.advance()
        for size in sizes:
            progress.start(f"writing and searching {size:,} passages", 1)
            vectors = RandomVectors(dimension)
            shards.append(shard_costs.measure_shard(size, texts, questions, vectors, threads))
            graphs.append(shards[-1].graph)
            progress.advance()
        progress.start(f"vectors of {OTHER_DIMENSION} values", 1)
        graphs.append(shard_costs.measure_graph(sizes[0], RandomVectors(OTHER_DIMENSION), threads))
        progress.advance()
    typer.echo(
        _units_json(reads, [len(each.title) + len(each.text) for each in texts], shards, graphs)
    )


def _units_json(
    reads: read_costs.ReadCosts,
    lengths: list[int],
    shards: list[shard_costs.MeasuredShard],
    graphs: list[GraphCost],
) -> str:
    costs: tuple[ShardCost, ...] = tuple(each.cost for each in shards)
    units = NodeUnits(
        read=reads.by_length,
        states=reads.states,
        mean_tokens=round(read_costs.QUESTION_TOKENS + statistics.fmean(lengths), 1),
        spread=reads.spread,
        together=reads.together,
        graphs=tuple(graphs),
        shards=costs,
        retrieve_spread=shards[-1].spread,
    )
    return units.model_dump_json()
