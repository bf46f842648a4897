"""Hostile clients on a real cluster: what must hold, and whether it does.

    python -m bench hostile --index INDEX --questions FILE
        [--only NAME] [--seconds N] [--minutes N] [--json]

Starts one cluster and attacks it in many ways, one after the other, while a polite client goes on
asking at a quarter of the peak rate. Everything runs on this machine and through the loopback
interface. Every attack is bounded in count and time, and ends early if the cluster grows by more
than 1 GB. Phases last until they have 500 answers, at most four times their seconds. Exits with 1
if a promise is broken, with 3 if one cannot be judged.
"""

import argparse
import resource
from functools import partial

from bench.hostile.courses import attacked, left, soaked
from bench.hostile.criteria import CHANGED, LABEL, none_named, outcomes, takes_no_longer
from bench.scenarios import runner
from bench.scenarios.criteria import (
    LEAST_ANSWERS,
    Criterion,
    all_complete,
    mark_within,
    p99_within,
)
from bench.scenarios.runner import Scenario
from bench.scenarios.stage import Shape

_SHAPE = Shape(passages=1, least=LEAST_ANSWERS, client="polite", http=True, load=0.25)
_MINUTES = 10.0
_REFUSALS = ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "UNAVAILABLE")
_FRONT_STATUSES = ("OK", *_REFUSALS, "UNIMPLEMENTED")
"""Statuses of a front; the last one for methods that do not exist."""
_REFUSED_HTTP = ("400", "404", "405", "408", "413", "415", "421", "429", "503", "504")
_HTTP_STATUSES = ("100", "200", *_REFUSED_HTTP, "held", "closed")
_NODE_STATUSES = (*_FRONT_STATUSES, "FAILED_PRECONDITION", "ABORTED")
_UNCHANGED = (
    none_named(CHANGED, "questions whose answers changed"),
    none_named(LABEL, "labels that may be made of what clients sent"),
)
_ENDED = 13.0
"""Seconds for which processes linger (2) and let calls go on (10), and one more: a half-sent call
cannot be told from one that has just begun.
"""
_KEPT = (
    mark_within("attacks ended early", 0),
    mark_within("memory kept", 64, " MB"),
    mark_within("descriptors kept", 8),
)


def _attack(name: str, description: str, *criteria: Criterion, polite: float = 2.0) -> Scenario:
    """An attack; the polite client's p99 is at most `polite` times that before."""
    beside = (all_complete("attack"), p99_within(polite, "attack", "quiet"))
    return Scenario(
        name=name,
        description=description,
        course=partial(attacked, name=name),
        criteria=(*criteria, *beside, *_KEPT, *_UNCHANGED),
        shape=_SHAPE,
    )


def scenarios(minutes: float = _MINUTES) -> tuple[Scenario, ...]:
    """Returns all scenarios; the soak lasts `minutes`."""
    return (
        _attack(
            "questions",
            "4,000 fuzzed questions and metadata",
            outcomes(*_FRONT_STATUSES, least=1_000),
        ),
        _attack("shards", "4,000 fuzzed calls to a node", outcomes(*_NODE_STATUSES, least=1_000)),
        _attack("bombs", "100 gzip bombs", outcomes(*_REFUSALS, least=50)),
        _attack(
            "connections",
            "2,000 idle, silent and half-framed connections",
            outcomes("held", "refused", least=1_000),
        ),
        _attack(
            "watches",
            "5,000 health watches on 50 connections",
            outcomes("OK", "waiting", "RESOURCE_EXHAUSTED", "UNAVAILABLE", least=1_000),
        ),
        _attack(
            "reflections",
            "10,000 questions to the reflection service",
            outcomes(*_FRONT_STATUSES, least=500),
        ),
        _attack(
            "streams",
            "1,000 idle streams on 10 connections",
            outcomes(
                "waiting", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", least=1_000
            ),
            polite=1.2,
        ),
        _attack("others", "HTTP/1, TLS and plain text", outcomes("closed", "held", least=1_000)),
        _attack(
            "cancels",
            "10,000 questions cancelled at once",
            outcomes("cancelled", "ended", least=5_000),
        ),
        _attack(
            "half-sent",
            "1,000 half-sent messages of 4 MB",
            outcomes("held", "closed", least=100),
            mark_within("memory at most", 64, " MB"),
        ),
        _attack(
            "burst",
            "3,000 questions at once on one connection",
            outcomes("OK", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", least=3_000),
        ),
        _attack(
            "http",
            "4,000 fuzzed requests over HTTP",
            outcomes(*_HTTP_STATUSES, least=1_000),
        ),
        _attack(
            "http-held",
            "2,000 idle, silent and half-sent connections over HTTP",
            outcomes("held", "refused", least=1_000),
        ),
        _attack(
            "http-bodies",
            "400 bodies over HTTP that are long, endless or in tiny chunks",
            outcomes(*_REFUSED_HTTP, "closed", "held", least=100),
            mark_within("memory at most", 192, " MB"),
        ),
        Scenario(
            name="leave-watches",
            description="SIGTERM beside thousands of health watches",
            course=partial(left, name="watches"),
            shape=_SHAPE,
            criteria=(takes_no_longer("front", 1.0), takes_no_longer("node 0", 1.0)),
        ),
        Scenario(
            name="leave-half-sent",
            description="SIGTERM beside 2,000 connections and 1,000 half-sent messages",
            course=partial(left, name="held"),
            shape=_SHAPE,
            criteria=tuple(
                mark_within(f"{process}, seconds while attacked", _ENDED, " s")
                for process in ("front", "node 0")
            ),
        ),
        Scenario(
            name="soak",
            description=f"{minutes:g} minutes of several attacks",
            course=partial(soaked, minutes=minutes),
            shape=_SHAPE,
            criteria=(
                outcomes(*_NODE_STATUSES, "cancelled", "ended"),
                p99_within(1.1, "last tenth", "first tenth"),
                mark_within("memory growth", 0.05),
                *_UNCHANGED,
            ),
        ),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench hostile`."""
    runner.add_arguments(parser, [scenario.name for scenario in scenarios()])
    parser.add_argument("--minutes", type=float, default=_MINUTES, help="length of the soak")


def run(options: argparse.Namespace) -> int:
    """Runs the chosen scenarios; returns the exit code."""
    # the cluster's processes inherit the limit of descriptors
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return runner.run(options, scenarios(options.minutes), one_cluster=True)
