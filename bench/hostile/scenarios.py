"""Runs attacks of hostile clients on a cluster, and checks what docs/faults.md promises.

    python -m bench hostile --index INDEX --questions FILE
        [--only NAME] [--seconds N] [--minutes N] [--json]

Starts one cluster and runs one attack after the other, while a polite client asks at a quarter of
the peak rate. Everything runs on this machine and through the loopback interface. Every attack is
limited in count and time, and ends early if the cluster's memory grows by more than 1 GB. Phases
last until they have 500 answers, for at most four times `--seconds`. Exits with 1 if a promise was
broken, with 3 if a promise is inconclusive.
"""

import argparse
import resource
from functools import partial

from bench.hostile.criteria import (
    CHANGED,
    LABEL,
    allowed_outcomes,
    no_value_named,
    shuts_down_in_time,
)
from bench.hostile.procedures import run_attack, run_soak_attacks, time_shutdown_under_attack
from bench.scenarios import runner
from bench.scenarios.criteria import (
    MIN_ANSWERS,
    Criterion,
    all_complete,
    p99_within,
    value_at_most,
)
from bench.scenarios.runner import Scenario
from bench.scenarios.stage import Setup

_SETUP = Setup(passages=1, min_answers=MIN_ANSWERS, client="polite", http=True, load=0.25)
_SOAK_MINUTES = 10.0
_REFUSALS = ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "UNAVAILABLE")
_FRONT_STATUSES = ("OK", *_REFUSALS, "UNIMPLEMENTED")
"""Allowed statuses of a front node. UNIMPLEMENTED is for methods that do not exist."""
_HTTP_REFUSALS = ("400", "404", "405", "408", "413", "415", "421", "429", "503", "504")
_HTTP_STATUSES = ("100", "200", *_HTTP_REFUSALS, "held", "closed")
_NODE_STATUSES = (*_FRONT_STATUSES, "FAILED_PRECONDITION", "ABORTED")
_UNCHANGED = (
    no_value_named(CHANGED, "questions whose answers changed"),
    no_value_named(LABEL, "labels that may come from client input"),
)
_MAX_SHUTDOWN_SECONDS = 13.0
"""Longest shutdown in seconds: 2 s of drain linger, 10 s for running calls, and 1 s of tolerance.

A half-sent call counts as a running call.
"""
_RELEASED = (
    value_at_most("attacks ended early", 0),
    value_at_most("memory kept", 64, " MB"),
    value_at_most("descriptors kept", 8),
)


_ATTACKS: dict[str, tuple[str, tuple[Criterion, ...]]] = {
    "questions": (
        "4,000 fuzzed questions and metadata",
        (allowed_outcomes(*_FRONT_STATUSES, min_count=1_000),),
    ),
    "shards": (
        "4,000 fuzzed calls to a node",
        (allowed_outcomes(*_NODE_STATUSES, min_count=1_000),),
    ),
    "bombs": ("100 gzip bombs", (allowed_outcomes(*_REFUSALS, min_count=50),)),
    "connections": (
        "2,000 idle, silent and half-framed connections",
        (allowed_outcomes("held", "refused", min_count=1_000),),
    ),
    "watches": (
        "5,000 health watches on 50 connections",
        (allowed_outcomes("OK", "waiting", "RESOURCE_EXHAUSTED", "UNAVAILABLE", min_count=1_000),),
    ),
    "reflections": (
        "10,000 questions to the reflection service",
        (allowed_outcomes(*_FRONT_STATUSES, min_count=500),),
    ),
    "streams": (
        "1,000 idle streams on 10 connections",
        (allowed_outcomes("waiting", *_REFUSALS[1:], min_count=1_000),),
    ),
    "others": (
        "HTTP/1, TLS and plain text",
        (allowed_outcomes("closed", "held", min_count=1_000),),
    ),
    "cancels": (
        "10,000 questions cancelled within milliseconds",
        (allowed_outcomes("cancelled", "ended", min_count=5_000),),
    ),
    "half-sent": (
        "1,000 half-sent messages of 4 MB",
        (
            allowed_outcomes("held", "closed", min_count=100),
            value_at_most("memory at most", 64, " MB"),
        ),
    ),
    "burst": (
        "3,000 concurrent questions on one connection",
        (allowed_outcomes("OK", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", min_count=3_000),),
    ),
    "http": (
        "4,000 fuzzed requests over HTTP",
        (allowed_outcomes(*_HTTP_STATUSES, min_count=1_000),),
    ),
    "http-held": (
        "2,000 idle, silent and half-sent connections over HTTP",
        (allowed_outcomes("held", "refused", min_count=1_000),),
    ),
    "http-bodies": (
        "400 bodies over HTTP that are long, endless or in tiny chunks",
        (
            allowed_outcomes(*_HTTP_REFUSALS, "closed", "held", min_count=100),
            value_at_most("memory at most", 192, " MB"),
        ),
    ),
}
"""Description of each attack, and its promises in addition to the promises of all attacks."""
_MAX_P99_RATIOS = {"streams": 1.2}
"""Upper bound of the polite client's p99 during an attack, divided by the p99 before; default 2."""


def scenarios(minutes: float = _SOAK_MINUTES) -> dict[str, Scenario]:
    """Returns all scenarios by name. The scenario `soak` lasts `minutes`."""
    attacks = {
        name: Scenario(
            description,
            partial(run_attack, name=name),
            (
                *criteria,
                all_complete("attack"),
                p99_within(_MAX_P99_RATIOS.get(name, 2.0), "attack", "quiet"),
                *_RELEASED,
                *_UNCHANGED,
            ),
            _SETUP,
        )
        for name, (description, criteria) in _ATTACKS.items()
    }
    return {
        **attacks,
        "leave-watches": Scenario(
            "SIGTERM beside thousands of health watches",
            partial(time_shutdown_under_attack, attack="watches"),
            (shuts_down_in_time("front", 1.0), shuts_down_in_time("node 0", 1.0)),
            _SETUP,
        ),
        "leave-half-sent": Scenario(
            "SIGTERM beside 2,000 connections and 1,000 half-sent messages",
            partial(time_shutdown_under_attack, attack="held"),
            tuple(
                value_at_most(f"{process}, seconds while attacked", _MAX_SHUTDOWN_SECONDS, " s")
                for process in ("front", "node 0")
            ),
            _SETUP,
        ),
        "soak": Scenario(
            f"{minutes:g} minutes of several attacks",
            partial(run_soak_attacks, minutes=minutes),
            (
                allowed_outcomes(*_NODE_STATUSES, "cancelled", "ended"),
                p99_within(1.1, "last tenth", "first tenth"),
                value_at_most("memory growth", 0.05),
                *_UNCHANGED,
            ),
            _SETUP,
        ),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench hostile`."""
    runner.add_arguments(parser, scenarios())
    parser.add_argument("--minutes", type=float, default=_SOAK_MINUTES, help="length of the soak")


def run(options: argparse.Namespace) -> int:
    """Runs the chosen scenarios; returns the exit code."""
    # the cluster's processes inherit the limit on open descriptors
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    return runner.run(options, scenarios(options.minutes), one_cluster=True)
