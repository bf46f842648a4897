"""Checks at the end of a simulation that nothing is left over, and that budgets were kept.

Every check returns sentences about violations.
"""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from winnow.replicas.policy.hedging import HedgeSettings

_FRONT_GAUGES = (
    "winnow_front_questions_in_flight",
    "winnow_front_reads_in_hand",
    "winnow_front_feed_passages_in_hand",
    "winnow_front_replica_outstanding",
)
_NODE_GAUGES = (
    "winnow_node_reads_in_hand",
    "winnow_node_reader_threads_busy",
    "winnow_node_writes_waiting",
)
_MAX_TASKS = 30
"""Tasks of an idle process of a small cluster, at most, for each index. It has some ten."""


def check_idle(
    name: str, registry: CollectorRegistry, tasks: Sequence[str], indexes: int
) -> Iterator[str]:
    """Checks that a process has no work left.

    Args:
        name: name of the process.
        registry: its metrics.
        tasks: the names of its tasks that run.
        indexes: number of its indexes.

    """
    for sample in _samples(registry, *_FRONT_GAUGES, *_NODE_GAUGES):
        if sample.value:
            yield f"{name} is idle, but {sample.name} {sample.labels} is {sample.value:g}"
    if len(tasks) > indexes * _MAX_TASKS:
        yield f"{name} is idle, but has {len(tasks)} tasks: {', '.join(tasks[:5])} ..."


def check_budgets(name: str, registry: CollectorRegistry, calls: int, pools: int) -> Iterator[str]:
    """Checks that a front has hedged and retried no more than its budgets allow.

    `calls`: number of calls that the front has sent to nodes, with hedges and retries. `pools`:
    number of pools of replicas, each with a budget.
    """
    settings = HedgeSettings()
    limit = pools * settings.initial + settings.budget * calls
    if (hedges := _sent(registry, "winnow_front_hedges")) > limit:
        yield f"{name} has sent {hedges:g} hedges for {calls} calls, not {limit:g} at most"
    # each retry follows a call that has failed
    if (retries := _sent(registry, "winnow_front_retries")) > calls / 2:
        yield f"{name} has sent {retries:g} retries for {calls} calls"


def _sent(registry: CollectorRegistry, name: str) -> float:
    return sum(
        sample.value
        for sample in _samples(registry, f"{name}_total")
        if sample.labels["result"] == "sent"
    )


def _samples(registry: CollectorRegistry, *names: str) -> Iterator[Sample]:
    """Yields the samples with some names, without collecting all the other metrics."""
    for metric in registry.restricted_registry(names).collect():
        yield from metric.samples
