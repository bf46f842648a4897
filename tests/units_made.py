"""Round unit costs: a core encodes in 2 ms, retrieves in 1 ms, and reads in 10 ms."""

from winnow.sizing.serving import CallCosts, RetrievalCost, ServingUnits, SpreadCost
from winnow.sizing.units import (
    SPREAD_QUANTILES,
    EncodeUnits,
    FrontUnits,
    GraphCost,
    LengthCost,
    NodeUnits,
    ProcessUnits,
    ShardCost,
    StatesUnits,
    UnitCosts,
)

SAME = (1.0,) * len(SPREAD_QUANTILES)
"""The spread of a constant duration."""


def graph(passages: int, dimension: int, search_ms: float) -> GraphCost:
    return GraphCost(
        passages=passages,
        dimension=dimension,
        search_ms=search_ms,
        bytes_each=4.0 * dimension + 150,
    )


def units() -> UnitCosts:
    shard = ShardCost(
        passages=10_000,
        dimension=384,
        hybrid_ms=1.0,
        dense_ms=0.6,
        sparse_ms=1.0,
        load_ms_each=0.006,
        write_ms_each=0.8,
        memory_bytes_each=450.0,
        disk_bytes_each=3_000.0,
    )
    return UnitCosts(
        processor="made up",
        cores=2,
        bundle="made up",
        encode=EncodeUnits(
            question=(LengthCost(tokens=10, ms=2.0), LengthCost(tokens=20, ms=2.0)),
            passage=LengthCost(tokens=150, ms=10.0),
        ),
        node=NodeUnits(
            read=(LengthCost(tokens=100, ms=10.0), LengthCost(tokens=200, ms=20.0)),
            states=StatesUnits(
                read=(LengthCost(tokens=100, ms=4.0), LengthCost(tokens=200, ms=8.0)),
                together=0.8,
                question=LengthCost(tokens=10, ms=1.0),
                compute=LengthCost(tokens=100, ms=5.0),
                bytes_a_token=400.0,
            ),
            mean_tokens=150.0,
            spread=SAME,
            together=1.0,
            graphs=(graph(1_000, 384, 0.3), graph(10_000, 384, 0.4), graph(1_000, 768, 0.6)),
            shards=(shard,),
            retrieve_spread=SAME,
        ),
        front=FrontUnits(question_ms=2.0, shard_ms=0.25, pair_us=1.0, read_ms=0.5),
        process=ProcessUnits(call_ms=1.0, client_ms=1.0, node_bytes=2e8, front_bytes=2e8),
    )


def serving_units() -> ServingUnits:
    """Round costs of serving. Reads take 5 to 15 ms, and a small shard retrieves in 1 ms."""
    spread = (0.5, 0.55, 0.6, 0.75, 1.0, 1.25, 1.4, 1.45, 1.48, 1.49, 1.495, 1.5)
    calls = CallCosts(call_ms=0.4, shard_ms=0.05, read_ms=0.6, spread=spread)
    return ServingUnits(
        question_ms=2.0,
        front=calls,
        node=calls,
        encode=SpreadCost(ms=1.0, spread=spread),
        retrieve=(
            RetrievalCost(passages=300, cost=SpreadCost(ms=1.0, spread=spread)),
            RetrievalCost(passages=2_400, cost=SpreadCost(ms=1.5, spread=spread)),
        ),
        read=SpreadCost(ms=10.0, spread=spread),
        together=0.8,
        client_ms=1.0,
        message_ms=0.05,
        handover_ms=0.05,
    )
