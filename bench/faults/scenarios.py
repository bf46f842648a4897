"""Causes faults in a cluster, and checks what docs/faults.md promises.

    python -m bench faults --index INDEX --questions FILE [--only NAME] [--seconds N] [--json]

For each scenario, starts a cluster, measures its peak rate, asks questions at half of the peak
rate, and causes a fault. Everything runs on this machine and through the loopback interface. Where
a p99 is judged, a phase lasts until it has 500 answers, for at most four times `--seconds`. Each
p99 has a 95 % confidence interval. Exits with 1 if a promise was broken, with 3 if a promise is
inconclusive. Use `--seconds 20` or more to get enough answers for a p99, and the 2 000 questions
of a rolling restart.
"""

import argparse
from dataclasses import replace
from functools import partial

from bench.faults import procedures
from bench.faults.procedures import MIN_RESTART_QUESTIONS, ForeignNode
from bench.scenarios import runner
from bench.scenarios.criteria import (
    MIN_ANSWERS,
    all_answered_by,
    all_complete,
    complete_after_return,
    min_goodput,
    none_failed,
    p99_within,
    partial_answers,
    refused_within,
    value_at_most,
    value_at_most_value,
)
from bench.scenarios.runner import Scenario
from bench.scenarios.stage import DEADLINE, Setup

_MAX_LATENCY = DEADLINE + 0.1
"""Longest latency in seconds. The network and the client may add 0.1 s to the deadline."""
_LOST_SHARD_PROMISES = (
    all_answered_by("going", _MAX_LATENCY),
    all_answered_by("without", _MAX_LATENCY),
    partial_answers("without"),
    all_answered_by("back", _MAX_LATENCY),
    complete_after_return("back"),
)
_LOST_REPLICA_PROMISES = (
    all_complete("going"),
    all_complete("without"),
    all_complete("back"),
    p99_within(2.0, "without"),
)
_FEW_PASSAGES = 2
"""Passages to read per question where a p99 is judged. Few passages make many answers."""
_REPLICAS = Setup(replicas=2, passages=_FEW_PASSAGES, min_answers=MIN_ANSWERS)
_OVERLOAD_PROMISES = (
    min_goodput("overload", 0.85),
    refused_within("overload", 0.01),
    value_at_most("memory growth", 0.05),
)
_REFUSED, _NOT_LOADED = "winnow_front_refused_nodes", "winnow_front_not_loaded_nodes"
_FOREIGN_NODES = {
    "index": ForeignNode(
        description="a shard of another index",
        metric=_REFUSED,
        manifest_changes={"index_id": "another"},
    ),
    "bundle": ForeignNode(
        description="a node with another bundle", metric=_REFUSED, score_changes={"span": 1.0}
    ),
    "dimension": ForeignNode(
        description="a shard of another dimension",
        metric=_NOT_LOADED,
        manifest_changes={"dimension": 128},
    ),
}
SCENARIOS = {
    "kill-shard": Scenario(
        "SIGKILL one of the shards, no replica", procedures.kill_node, _LOST_SHARD_PROMISES
    ),
    "stop-shard": Scenario(
        "SIGSTOP one of the shards, no replica", procedures.stop_node, _LOST_SHARD_PROMISES
    ),
    "kill-replica": Scenario(
        "SIGKILL one replica of two", procedures.kill_node, _LOST_REPLICA_PROMISES, _REPLICAS
    ),
    "stop-replica": Scenario(
        "SIGSTOP one replica of two", procedures.stop_node, _LOST_REPLICA_PROMISES, _REPLICAS
    ),
    "slow-replica": Scenario(
        "slow down one replica of two by a factor of ten",
        procedures.slow_down_replica,
        (all_complete("slow"), p99_within(1.5, "slow"), value_at_most("extra load", 0.05)),
        replace(_REPLICAS, proxied=True),
    ),
    "overload": Scenario(
        "ask at four times the peak rate", procedures.overload_front, _OVERLOAD_PROMISES
    ),
    "overload-apart": Scenario(
        "ask at four times the peak rate, content nodes on separate cores",
        procedures.overload_front,
        _OVERLOAD_PROMISES,
        Setup(separate_cores=True),
    ),
    "cancel": Scenario(
        "cancel questions while their passages are read",
        procedures.cancel_questions,
        (value_at_most_value("busy after a cancel", "one passage", " s"),),
    ),
    "rolling-restart": Scenario(
        "restart every process in turn, two replicas, two fronts",
        procedures.restart_all,
        (none_failed("restarting", MIN_RESTART_QUESTIONS), all_complete("restarting")),
        Setup(replicas=2, fronts=2),
    ),
    **{
        f"stranger-{name}": Scenario(
            f"start {foreign_node.description} beside the cluster",
            partial(procedures.join_foreign_node, foreign_node=foreign_node),
            (all_complete("joining"),),
            Setup(foreign_node=True),
        )
        for name, foreign_node in _FOREIGN_NODES.items()
    },
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench faults`."""
    runner.add_arguments(parser, SCENARIOS)


def run(options: argparse.Namespace) -> int:
    """Runs the chosen scenarios; returns the exit code."""
    return runner.run(options, SCENARIOS)
