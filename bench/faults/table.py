"""The scenarios: a fault, the shape of the cluster, and what must hold."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from bench.faults import courses
from bench.faults.judge import (
    LEAST_ANSWERS,
    Criterion,
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
from bench.faults.stage import DEADLINE, Shape, Stage
from bench.faults.strangers import STRANGERS


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table."""

    name: str
    fault: str
    """In words."""
    course: Callable[[Stage], Awaitable[None]]
    criteria: tuple[Criterion, ...]
    shape: Shape = field(default_factory=Shape)


_LATE = DEADLINE + 0.1
"""What the network and the client may add."""
_LOST = (
    all_in_time("going", _LATE),
    all_in_time("without", _LATE),
    partial_answers("without"),
    all_in_time("back", _LATE),
    complete_again("back"),
)
_SPARED = (
    all_complete("going"),
    all_complete("without"),
    all_complete("back"),
    p99_within(2.0, "without"),
)

_FEW = 2
"""Passages that a question has read where a p99 is judged: enough are answered in a short time."""

_LOADED = (
    goodput("overload", 0.85),
    refused_within("overload", 0.01),
    mark_within("memory growth", 0.05),
)

SCENARIOS = (
    Scenario("kill-shard", "SIGKILL one of the shards, no replica", courses.killed, _LOST),
    Scenario("stop-shard", "SIGSTOP one of the shards, no replica", courses.stopped, _LOST),
    Scenario(
        "kill-replica",
        "SIGKILL one replica of two",
        courses.killed,
        _SPARED,
        Shape(2, passages=_FEW, least=LEAST_ANSWERS),
    ),
    Scenario(
        "stop-replica",
        "SIGSTOP one replica of two",
        courses.stopped,
        _SPARED,
        Shape(2, passages=_FEW, least=LEAST_ANSWERS),
    ),
    Scenario(
        "slow-replica",
        "one replica of two ten times slower",
        courses.slow,
        (all_complete("slow"), p99_within(1.5, "slow"), mark_within("extra load", 0.05)),
        Shape(2, proxied=True, passages=_FEW, least=LEAST_ANSWERS),
    ),
    Scenario("overload", "four times the load that can be answered", courses.overloaded, _LOADED),
    Scenario(
        "overload-apart",
        "the same, nodes on processors of their own",
        courses.overloaded,
        _LOADED,
        Shape(apart=True),
    ),
    Scenario(
        "cancel",
        "a client goes away while passages are read",
        courses.cancelled,
        (mark_within_mark("busy after a cancel", "one passage", " s"),),
    ),
    Scenario(
        "rolling-restart",
        "every process restarted, two replicas, two fronts",
        courses.restarted,
        (none_failed("restarting", 2_000), all_complete("restarting")),
        Shape(2, fronts=2),
    ),
    *(
        Scenario(
            f"stranger-{name}",
            f"{stranger.said} joins",
            partial(courses.joined, stranger=stranger),
            (all_complete("joining"),),
            Shape(stranger=True),
        )
        for name, stranger in STRANGERS.items()
    ),
)
