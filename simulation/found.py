"""Plans that once broke a promise, or that show deliberate errors that seeds rarely find.

They stay, even if the seeds give other plans later.
"""

from collections.abc import Iterator
from dataclasses import replace

from simulation.plan import Plan, Shape, Step, StepKind

_EVERY = 0.05
"""Seconds between two steps of close traffic."""


def _put(at: float, client: int, text: str, timeout: float = 4.0) -> Step:
    return Step(at=at, kind=StepKind.PUT, client=client, id="id-0", text=text, timeout=timeout)


def _fault(at: float, kind: StepKind, target: str, other: str = "", seconds: float = 1.0) -> Step:
    return Step(at=at, kind=kind, target=target, other=other, seconds=seconds)


def _break(at: float, target: str, other: str, seconds: float, after: float) -> Step:
    """Returns connections that stall at once, break after some seconds, and deliver later."""
    return replace(_fault(at, StepKind.BREAK, target, other, seconds), amount=after)


def _twins(at: float, number: int) -> tuple[Step, Step]:
    """Returns two equal questions of one client. The second one names the last writes."""
    first = Step(at=at, kind=StepKind.ASK, client=0, text=f"w{number} w2", timeout=4.0)
    return first, replace(first, at=at + 0.001, waits_for_writes=True)


def _command(at: float, kind: StepKind) -> Step:
    return Step(at=at, kind=kind, target="terminal-0")


def _traffic(begin: float, end: float) -> Iterator[Step]:
    """Yields writes and questions of two clients, which follow each other closely."""
    for number in range(int((end - begin) / _EVERY)):
        at, client = begin + number * _EVERY, number % 2
        kind = [StepKind.PUT, StepKind.ASK, StepKind.PUT, StepKind.DELETE][number % 4]
        is_question = kind is StepKind.ASK
        yield Step(
            at=at,
            kind=kind,
            client=client,
            id="" if is_question else f"id-{number % 7}",
            text={
                StepKind.ASK: f"w{number % 3} w9",
                StepKind.PUT: f"w{number % 40} w{number % 31} n{number}",
            }.get(kind, ""),
            version=number if kind is StepKind.PUT and number % 5 == 0 else None,
            timeout=8.0,
        )


def _questions(begin: float, end: float, every: float) -> Iterator[Step]:
    """Yields the same question again and again."""
    for number in range(int((end - begin) / every)):
        at = begin + number * every
        yield Step(at=at, kind=StepKind.ASK, text="w1 w9 w17", timeout=4.0)


_FIRST = (_put(1.0, 0, "w1 first"), _put(1.5, 1, "w2 second"))


def _plan(shape: Shape, *steps: Step) -> Plan:
    return Plan(
        seed=0,
        shape=shape,
        steps=tuple(sorted((*_FIRST, *steps), key=lambda step: step.at)),
    )


_SINGLE = Shape(shards=1, replicas=1, fronts=2, clients=2)
_REPLICATED = Shape(shards=1, replicas=2, fronts=2, clients=2)
_NAMED = Shape(shards=1, replicas=1, fronts=1, clients=2, is_named=True)
_ASSIGNED = Shape(shards=1, replicas=1, fronts=1, clients=2, is_assigned=True)

FOUND = {
    "a write arrives after its call has failed": _plan(
        _SINGLE,
        _fault(3.0, StepKind.CUT, "front-0", "node-0", 6.0),
        _put(3.2, 0, "w3 old", timeout=2.5),
        _put(6.5, 1, "w4 new"),
    ),
    "a write arrives on a broken connection after its call has succeeded": _plan(
        _SINGLE,
        _break(3.0, "front-0", "node-0", seconds=3.0, after=0.5),
        Step(at=3.1, kind=StepKind.DELETE, client=0, id="id-0", timeout=8.0),
        _put(4.5, 1, "w4 new"),
    ),
    "an entry of a killed replica arrives after another replica took the write": _plan(
        _REPLICATED,
        _fault(3.0, StepKind.CUT, "node-0a", "journal", 1.5),
        _put(3.1, 0, "w3 old"),
        _fault(3.4, StepKind.KILL, "node-0a", seconds=5.0),
        _put(4.0, 1, "w4 new"),
    ),
    "an entry of the journal arrives after its write has failed": _plan(
        _REPLICATED,
        _fault(2.9, StepKind.KILL, "node-0b", seconds=3.5),
        _fault(3.0, StepKind.CUT, "node-0a", "journal", 6.0),
        _put(3.2, 0, "w3 old", timeout=2.5),
        _fault(6.6, StepKind.KILL, "node-0a", seconds=5.0),
        _put(7.2, 1, "w4 new"),
    ),
    "a power loss erases the first snapshot": _plan(
        _SINGLE,
        _fault(3.0, StepKind.SNAPSHOT, "node-0"),
        _fault(5.0, StepKind.POWER_LOSS, "node-0"),
    ),
    "the first copy of an entry arrives after a newer one": _plan(
        _REPLICATED,
        _break(3.0, "node-0a", "journal", seconds=1.5, after=0.3),
        _put(3.01, 0, "w3 old"),
        _put(4.3, 1, "w4 new"),
    ),
    "a shard moves with a write that has failed": _plan(
        _ASSIGNED,
        _fault(3.0, StepKind.FULL_DISK, "node-0", seconds=0.6),
        _put(3.1, 0, "w3 failed", timeout=0.3),
        Step(at=4.0, kind=StepKind.MOVE, other="node-x"),
        _put(4.118, 0, "w4 new"),
    ),
    "an index is replaced after the commit of a write has failed": _plan(
        _NAMED,
        _command(2.0, StepKind.REBUILD),
        _command(6.0, StepKind.SWITCH),
        _fault(12.0, StepKind.FULL_DISK, "node-0", seconds=0.6),
        _put(12.1, 0, "w3 failed", timeout=0.3),
    ),
    "an index is rebuilt and replaced while clients write": _plan(
        _NAMED,
        *_traffic(1.0, 11.0),
        _command(2.0, StepKind.REBUILD),
        replace(_fault(2.0, StepKind.KILL_AT, "terminal-0", seconds=0.5), point="copy.stored"),
        _command(6.5, StepKind.SWITCH),
    ),
    "an index with replicas is replaced while clients write": _plan(
        replace(_NAMED, replicas=2, fronts=2),
        *_traffic(4.0, 9.0),
        _command(2.0, StepKind.REBUILD),
        _fault(6.6, StepKind.CUT, "node-0a", "journal", 1.8),
        _command(6.0, StepKind.SWITCH),
    ),
    "a write of a killed command arrives after another command has switched": _plan(
        _NAMED,
        *_traffic(4.0, 15.0),
        _command(2.0, StepKind.REBUILD),
        replace(_fault(5.9, StepKind.SLOW_NETWORK, "terminal-0", seconds=4.0), amount=0.3),
        _command(6.0, StepKind.SWITCH),
        _fault(8.2, StepKind.CUT, "terminal-0", "node-0", 4.3),
        _fault(8.55, StepKind.KILL, "terminal-0", seconds=15.0),
        replace(_command(8.6, StepKind.SWITCH), target="terminal-1"),
    ),
    "passages are deleted before a killed command runs again": _plan(
        _NAMED,
        *(replace(_put(1.6, 0, f"w{number} w9"), id=f"id-{number}") for number in range(1, 6)),
        _command(2.0, StepKind.REBUILD),
        replace(_fault(2.0, StepKind.KILL_AT, "terminal-0", seconds=2.0), point="copy.stored"),
        *(
            Step(at=5.0, kind=StepKind.DELETE, id=f"id-{number}", timeout=4.0)
            for number in range(1, 4)
        ),
        _command(8.0, StepKind.SWITCH),
        *_questions(7.0, 15.0, every=0.25),
    ),
    "a front reads of a new index and of its alias at the same time": _plan(
        _NAMED,
        _fault(1.5, StepKind.UNREADABLE, "front-0", seconds=9.0),
        _command(2.0, StepKind.REBUILD),
        _command(6.0, StepKind.SWITCH),
        *_questions(10.5, 11.6, every=0.005),
    ),
    "a replica that lags is asked whether a put changes anything": _plan(
        _REPLICATED,
        _break(3.0, "front-1", "node-0a", seconds=1.0, after=0.3),
        Step(at=3.1, kind=StepKind.DELETE, client=1, id="id-1", timeout=4.0),
        _put(6.0, 0, "w4 old"),
        _fault(8.0, StepKind.CUT, "journal", "node-0a", 3.0),
        _put(8.2, 1, "w5 new"),
        _put(8.4, 0, "w4 old"),
    ),
    "a question that names a write joins one that a lagging replica answers": _plan(
        _REPLICATED,
        _break(3.0, "front-1", "node-0a", seconds=1.0, after=0.3),
        Step(at=3.1, kind=StepKind.DELETE, client=1, id="id-1", timeout=4.0),
        _fault(7.0, StepKind.CUT, "journal", "node-0a", 5.0),
        _put(7.2, 1, "w1 new"),
        *(step for number in range(12) for step in _twins(8.5 + 0.2 * number, number)),
    ),
}
"""The plans by what happens in them."""
