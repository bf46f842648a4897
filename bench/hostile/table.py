"""The scenarios: what hostile clients do, and what must hold."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench.faults.judge import Criterion, all_complete, mark_within, p99_within
from bench.faults.stage import Stage
from bench.hostile.courses import attacked, left, soaked
from bench.hostile.judge import CHANGED, LABEL, none_named, outcomes, takes_no_longer

Course = Callable[[Stage, Sequence[str]], Awaitable[None]]
MINUTES = 10.0
"""Of the soak, unless said otherwise."""
_REFUSALS = ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "UNAVAILABLE")
_DOCUMENTED = ("OK", *_REFUSALS, "UNIMPLEMENTED")
"""What a front may say; the last one to calls of methods that are not there."""
_REFUSED_HTTP = ("400", "404", "405", "408", "413", "415", "421", "429", "503", "504")
_OF_HTTP = ("100", "200", *_REFUSED_HTTP, "held", "hung up")
_OF_NODES = (*_DOCUMENTED, "FAILED_PRECONDITION", "ABORTED")
_UNCHANGED = (
    none_named(CHANGED, "questions answered otherwise than before"),
    none_named(LABEL, "labels that may be made of what was sent"),
)
_ENDED = 13.0
"""Seconds that the cluster's processes linger (2) and let calls go on (10), and one more: a call
whose message is half there is not told from one that has just begun.
"""
_KEPT = (
    mark_within("attacks ended early", 0),
    mark_within("memory kept", 64, " MB"),
    mark_within("descriptors kept", 8),
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table."""

    name: str
    said: str
    """What is done, in words."""
    course: Course
    criteria: tuple[Criterion, ...]


def _attack(name: str, said: str, *own: Criterion, polite: float = 2.0) -> Scenario:
    beside = (all_complete("attack"), p99_within(polite, "attack", "quiet"))
    return Scenario(name, said, partial(attacked, name=name), (*own, *beside, *_KEPT, *_UNCHANGED))


def scenarios(minutes: float = MINUTES) -> tuple[Scenario, ...]:
    """All of them; the soak lasts so many minutes."""
    return (
        _attack(
            "questions",
            "4,000 fuzzed questions and metadata",
            outcomes(*_DOCUMENTED, least=1_000),
        ),
        _attack("shards", "4,000 fuzzed calls to a node", outcomes(*_OF_NODES, least=1_000)),
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
            outcomes(*_DOCUMENTED, least=500),
        ),
        _attack(
            "streams",
            "1,000 idle streams on 10 connections",
            outcomes(
                "waiting", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", least=1_000
            ),
            polite=1.2,
        ),
        _attack("others", "HTTP/1, TLS and plain words", outcomes("hung up", "held", least=1_000)),
        _attack(
            "cancels",
            "10,000 questions cancelled at once",
            outcomes("given up", "ended", least=5_000),
        ),
        _attack(
            "half-sent",
            "1,000 half-sent messages of 4 MB",
            outcomes("held", "hung up", least=100),
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
            outcomes(*_OF_HTTP, least=1_000),
        ),
        _attack(
            "http-held",
            "2,000 idle, silent and half-sent connections over HTTP",
            outcomes("held", "refused", least=1_000),
        ),
        _attack(
            "http-bodies",
            "400 bodies over HTTP that are long, endless or in tiny chunks",
            outcomes(*_REFUSED_HTTP, "hung up", "held", least=100),
            mark_within("memory at most", 192, " MB"),
        ),
        Scenario(
            "leave-watches",
            "SIGTERM beside thousands of health watches",
            partial(left, name="watches"),
            (takes_no_longer("front", 1.0), takes_no_longer("node 0", 1.0)),
        ),
        Scenario(
            "leave-half-sent",
            "SIGTERM beside 2,000 connections and 1,000 half-sent messages",
            partial(left, name="held"),
            tuple(
                mark_within(f"{process}, seconds while attacked", _ENDED, " s")
                for process in ("front", "node 0")
            ),
        ),
        Scenario(
            "soak",
            f"{minutes:g} minutes of several attacks",
            partial(soaked, minutes=minutes),
            (
                outcomes(*_OF_NODES, "given up", "ended"),
                p99_within(1.1, "last tenth", "first tenth"),
                mark_within("memory growth", 0.05),
                *_UNCHANGED,
            ),
        ),
    )
