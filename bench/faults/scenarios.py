"""Faults on a real cluster: what must hold, and whether it does.

    python -m bench faults --index INDEX --questions FILE [--only NAME] [--seconds N] [--json]

Starts a cluster for every scenario, measures its peak, asks at half of that rate, and does the
harm. Everything runs on this machine and through the loopback interface. Where a p99 is judged, a
phase lasts until it has 500 answers, at most four times its seconds; the interval beside the p99
holds 95 times in 100. Exits with 1 if a promise is broken, with 3 if one cannot be judged. A run
with few seconds only tries the scenarios out: p99 and the 2 000 questions of the rolling restart
need twenty or more.
"""

import argparse
from functools import partial

from bench.faults import courses
from bench.faults.courses import LEAST_RESTARTED, Stranger
from bench.scenarios import runner
from bench.scenarios.criteria import (
    LEAST_ANSWERS,
    all_complete,
    all_in_time,
    complete_again,
    goodput,
    mark_within,
    mark_within_mark,
    none_failed,
    p99_within,
    partial_answers,
    refused_within,
)
from bench.scenarios.runner import Scenario
from bench.scenarios.stage import DEADLINE, Shape

_LATE = DEADLINE + 0.1
"""What the network and the client may add to the deadline."""
_SHARD_LOST = (
    all_in_time("going", _LATE),
    all_in_time("without", _LATE),
    partial_answers("without"),
    all_in_time("back", _LATE),
    complete_again("back"),
)
_REPLICA_LOST = (
    all_complete("going"),
    all_complete("without"),
    all_complete("back"),
    p99_within(2.0, "without"),
)
_FEW = 2
"""Passages that a question has read where a p99 is judged: so a short time has enough answers."""
_REPLICAS = Shape(replicas=2, passages=_FEW, least=LEAST_ANSWERS)
_LOADED = (
    goodput("overload", 0.85),
    refused_within("overload", 0.01),
    mark_within("memory growth", 0.05),
)
_REFUSED, _NOT_LOADED = "winnow_front_refused_nodes", "winnow_front_not_loaded_nodes"
_STRANGERS = {
    "index": Stranger(
        fault="a shard of another index", counted=_REFUSED, shard={"index_id": "another"}
    ),
    "bundle": Stranger(fault="a node with another bundle", counted=_REFUSED, score={"span": 1.0}),
    "dimension": Stranger(
        fault="a shard of another dimension", counted=_NOT_LOADED, shard={"dimension": 128}
    ),
}
SCENARIOS = (
    Scenario(
        name="kill-shard",
        description="SIGKILL one of the shards, no replica",
        course=courses.killed,
        criteria=_SHARD_LOST,
    ),
    Scenario(
        name="stop-shard",
        description="SIGSTOP one of the shards, no replica",
        course=courses.stopped,
        criteria=_SHARD_LOST,
    ),
    Scenario(
        name="kill-replica",
        description="SIGKILL one replica of two",
        course=courses.killed,
        criteria=_REPLICA_LOST,
        shape=_REPLICAS,
    ),
    Scenario(
        name="stop-replica",
        description="SIGSTOP one replica of two",
        course=courses.stopped,
        criteria=_REPLICA_LOST,
        shape=_REPLICAS,
    ),
    Scenario(
        name="slow-replica",
        description="one replica of two ten times slower",
        course=courses.slow,
        criteria=(all_complete("slow"), p99_within(1.5, "slow"), mark_within("extra load", 0.05)),
        shape=Shape(replicas=2, proxied=True, passages=_FEW, least=LEAST_ANSWERS),
    ),
    Scenario(
        name="overload",
        description="four times the peak load",
        course=courses.overloaded,
        criteria=_LOADED,
    ),
    Scenario(
        name="overload-apart",
        description="four times the peak load, content nodes on their own processors",
        course=courses.overloaded,
        criteria=_LOADED,
        shape=Shape(own_cores=True),
    ),
    Scenario(
        name="cancel",
        description="a client cancels while passages are read",
        course=courses.cancelled,
        criteria=(mark_within_mark("busy after a cancel", "one passage", " s"),),
    ),
    Scenario(
        name="rolling-restart",
        description="every process restarted, two replicas, two fronts",
        course=courses.restarted,
        criteria=(none_failed("restarting", LEAST_RESTARTED), all_complete("restarting")),
        shape=Shape(replicas=2, fronts=2),
    ),
    *(
        Scenario(
            name=f"stranger-{name}",
            description=f"{stranger.fault} joins",
            course=partial(courses.joined, stranger=stranger),
            criteria=(all_complete("joining"),),
            shape=Shape(stranger=True),
        )
        for name, stranger in _STRANGERS.items()
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench faults`."""
    runner.add_arguments(parser, [scenario.name for scenario in SCENARIOS])


def run(options: argparse.Namespace) -> int:
    """Runs the chosen scenarios; returns the exit code."""
    return runner.run(options, SCENARIOS)
