"""Draws the plan of a seed: the cluster, the calls of clients, and the faults. Pure."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from simulation.fault_points import SYNC_POINT
from simulation.plan import (
    AT_POINTS,
    CALLS,
    COMMANDS,
    MOVES,
    POWER_CUTS,
    Plan,
    Shape,
    Step,
    StepKind,
)
from winnow.faultpoints import POINTS

_SECONDS = 20.0
"""Seconds in which clients of a short plan begin calls."""
_IDS = (3, 12)
"""Numbers of ids that clients write to; few, so that writes meet."""
_WORDS = 40
_REPEATED_SHARE = 1 / 4
"""Share of puts with a text that the id may have or have had."""
_TWIN_SHARE, _TWIN_SECONDS = 1 / 4, 0.01
"""Share of questions that are asked twice, and the seconds in which the second one follows."""
_POWER_CUT_SHARE = 1 / 8
"""Share of plans that only have power losses and kills at fault points."""
_UNSYNCED_SHARE = 1 / 8
"""Share of plans with a journal that may lose acknowledged entries by a power loss."""
_TENANTS_SHARE = 1 / 6
"""Share of plans with an index that has tenants."""
_NAMED_SHARE = 1 / 5
"""Share of plans whose index has a name and an alias, and is rebuilt."""
_NAMED_SECONDS = 30.0
"""Seconds of these plans: commands take a while."""
_MOVES_SHARE = 1 / 4
"""Share of plans whose shards move and split."""
_MOVES = (1, 6)
"""Least and greatest number of moves and splits of a plan."""
_POINTS = (
    SYNC_POINT,
    *(point for point in POINTS if not point.startswith(("custody", "repair", "copy"))),
)
"""Fault points that a cluster without moves, copies and damage reaches."""
_COMMAND_POINTS = tuple(point for point in POINTS if point.startswith("copy"))
"""Fault points of commands."""
_MOVE_POINT = "custody.recorded"
_MOVE_POINT_SHARE = 1 / 3
"""Share of kills at a fault point that happen during a move."""
_NAMED_FAULTS = COMMANDS | {StepKind.UNREADABLE}
_FAULTS = tuple(kind for kind in StepKind if kind not in CALLS | MOVES | _NAMED_FAULTS)
_COMMAND_FAULTS = (
    *(2 * [StepKind.KILL]),
    *(2 * [StepKind.KILL_AT]),
    StepKind.PAUSE,
    StepKind.CUT,
    StepKind.BREAK,
)
"""Faults that happen to commands."""
_LONG_SHARE = 1 / 10
"""Share of plans with pauses of minutes, in which windows of time pass and the cluster rests."""
_PARTS = (3, 5)
"""Least and greatest number of parts of these plans, between which the pauses are."""
_PAUSE_SECONDS = (40.0, 200.0)
"""Shortest and longest pause. The journal recognises a repeated message for 120 seconds."""
_LONG_FAULT_SHARE = 1 / 3
"""Share of faults of these plans that last as long as a pause."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What all plans of a command have in common. What it leaves open is drawn."""

    shape: Shape | None = None
    power_cuts: bool = False
    """Whether all faults are power losses and kills at fault points, and merges are frequent."""
    named: bool = False
    """Whether the index has a name, and is rebuilt."""
    long: bool = False
    """Whether there are pauses of minutes."""


def make_plan(seed: int, wish: Wish = Wish()) -> Plan:
    """Returns the plan of a seed."""
    rng, moving = Random(f"plan {seed}"), Random(f"moves {seed}")
    shape, seconds = wish.shape, _SECONDS
    if shape is None:
        shape = replace(_draw_shape(rng), is_assigned=moving.random() < _MOVES_SHARE)
        if Random(f"tenants {seed}").random() < _TENANTS_SHARE:
            shape = replace(shape, tenants=2, clients=4)
        if wish.named or Random(f"names {seed}").random() < _NAMED_SHARE:
            shape = replace(shape, is_named=True, is_assigned=False, tenants=0)
            seconds = _NAMED_SECONDS
    # few kinds in a plan: with all of them, little would succeed
    power_cuts = wish.power_cuts or rng.random() < _POWER_CUT_SHARE
    kinds = [
        kind for kind in _FAULTS if (kind in POWER_CUTS if power_cuts else rng.random() < 1 / 3)
    ]
    if not shape.has_journal:
        kinds = [kind for kind in kinds if kind is not StepKind.JOURNAL_FULL]
    if shape.is_assigned or shape.is_named:
        kinds = [kind for kind in kinds if kind is not StepKind.SNAPSHOT]
    faults = rng.randint(4, 16) if power_cuts else rng.randint(0, 12)
    steps = [
        *_calls(rng, shape, seconds),
        *(_fault(rng, shape, rng.choice(kinds), seconds) for _ in range(faults) if kinds),
    ]
    if shape.is_assigned:
        steps = [_during_move(moving, step) for step in steps] + _moves(moving, shape, seconds)
    if shape.is_named:
        steps += _commands(Random(f"commands {seed}"), shape, seconds)
    may_lose = shape.has_journal and not (shape.is_assigned or shape.is_named)
    syncs_journal = not may_lose or rng.random() >= _UNSYNCED_SHARE
    if not syncs_journal:
        steps.append(replace(_fault(rng, shape, StepKind.POWER_LOSS, seconds), target="journal"))
    pausing = Random(f"pauses {seed}")
    if pausing.random() < _LONG_SHARE or wish.long:
        steps = _with_pauses(pausing, steps, seconds)
    return Plan(
        seed=seed,
        shape=shape,
        steps=tuple(sorted(steps, key=lambda step: step.at)),
        merge_after=4 if power_cuts else rng.choice([4, 12, 1_000]),
        syncs_journal=syncs_journal,
    )


def _with_pauses(rng: Random, steps: Sequence[Step], seconds: float) -> list[Step]:
    """Divides a plan of `seconds` into parts, with pauses of minutes between them.

    Some faults last as long as a pause, so they end in a later part.
    """
    parts = rng.randint(*_PARTS)
    pauses = [rng.uniform(*_PAUSE_SECONDS) for _ in range(parts - 1)]
    delays = list(itertools.accumulate(pauses, initial=0.0))
    long = []
    for step in steps:
        at = step.at + delays[min(int(step.at / seconds * parts), parts - 1)]
        lasts = step.seconds and rng.random() < _LONG_FAULT_SHARE
        long.append(
            replace(step, at=at, seconds=rng.uniform(*_PAUSE_SECONDS) if lasts else step.seconds)
        )
    return long


def _draw_shape(rng: Random) -> Shape:
    """Returns a small cluster."""
    return Shape(
        shards=rng.choice([1, 1, 2, 3]),
        replicas=rng.choice([1, 2, 2, 3]),
        together=rng.random() < 1 / 2,
        fronts=rng.choice([1, 2]),
        clients=rng.randint(1, 4),
    )


def _calls(rng: Random, shape: Shape, seconds: float) -> list[Step]:
    """Returns the calls of all clients."""
    steps = []
    number = 0
    rate = rng.choice([0.3, 1.0, 3.0])  # calls of a client per second
    # few questions, so that answers are cached and shared
    questions = [_words(rng) for _ in range(rng.choice([2, 6, 50]))]
    ids = rng.choice(_IDS)
    texts = dict[str, list[str]]()  # earlier texts of each id
    uses_versions = rng.random() < 1 / 4
    for client in range(shape.clients):
        at = rng.expovariate(rate)
        while at < seconds:
            number += 1
            kind = rng.choices([StepKind.PUT, StepKind.DELETE, StepKind.ASK], [4, 2, 4])[0]
            identifier = f"id-{rng.randrange(ids)}"
            timeout = rng.choice([2.5, 4.0, 8.0])
            version = rng.randint(1, 20) if uses_versions and rng.random() < 1 / 2 else None
            if kind is StepKind.ASK:
                step = Step(
                    at=at,
                    kind=kind,
                    client=client,
                    tenant=shape.tenant(client),
                    text=rng.choice(questions),
                    timeout=rng.choice([0.5, 2.0, 4.0]),
                    waits_for_writes=rng.random() < 1 / 3,
                    allows_partial=rng.random() < 3 / 4,
                )
            else:
                text = f"{_words(rng)} n{number}" if kind is StepKind.PUT else ""
                earlier = texts.setdefault(identifier, [])
                if text and earlier and rng.random() < _REPEATED_SHARE:
                    text = rng.choice(earlier)  # may be unchanged
                earlier += [text] if text else []
                step = Step(
                    at=at,
                    kind=kind,
                    client=client,
                    tenant=shape.tenant(client),
                    id=identifier,
                    text=text,
                    timeout=timeout,
                    version=version,
                )
            steps.append(step)
            if kind is StepKind.ASK and rng.random() < _TWIN_SHARE:
                soon = at + rng.uniform(0, _TWIN_SECONDS)
                steps.append(replace(step, at=soon, waits_for_writes=True))
            at += rng.expovariate(rate)
    return steps


def _moves(rng: Random, shape: Shape, seconds: float) -> list[Step]:
    """Returns moves and splits of shards."""
    return [
        Step(
            at=rng.uniform(0, seconds),
            kind=rng.choices([StepKind.MOVE, StepKind.SPLIT], [3, 1])[0],
            other=rng.choice(list(shape.nodes())),
            number=rng.randrange(8),
        )
        for _ in range(rng.randint(*_MOVES))
    ]


def _commands(rng: Random, shape: Shape, seconds: float) -> list[Step]:
    """Returns the commands that rebuild the index and switch its alias, and their faults."""
    terminals, nodes = shape.terminal_names(), list(shape.nodes())
    begin = rng.uniform(0.5, seconds / 3)
    switches = [StepKind.SWITCH] * rng.choice([0, 1, 1, 2, 3])
    others = [kind for kind in (StepKind.REBUILD, StepKind.KEEP_ALIAS) if rng.random() < 1 / 3]
    steps = [Step(at=begin, kind=StepKind.REBUILD, target=terminals[0])]
    for kind in (*switches, *others):
        at, target = rng.uniform(begin, seconds), rng.choice(terminals)
        steps.append(Step(at=at, kind=kind, target=target))
    for _ in range(rng.choice([0, 1, 2, 4])):
        kind, target, other = rng.choice(_COMMAND_FAULTS), rng.choice(terminals), ""
        if kind in (StepKind.CUT, StepKind.BREAK):
            target, other = rng.sample([target, rng.choice(nodes)], 2)
        fault = Step(
            at=rng.uniform(begin, seconds),
            kind=kind,
            target=target,
            other=other,
            point=rng.choice(_COMMAND_POINTS) if kind in AT_POINTS else "",
            seconds=rng.choice([0.1, 1.0, 3.0, 12.0]) * rng.uniform(0.5, 1.5),
            amount=rng.uniform(0, 1) if kind is StepKind.BREAK else 0.0,
        )
        steps.append(fault)
    if rng.random() < 1 / 3:
        target = rng.choice([*nodes, *shape.front_names()])
        steps += _unreadable(rng, shape, target, rng.uniform(begin, seconds))
    return steps


def _unreadable(rng: Random, shape: Shape, target: str, at: float) -> list[Step]:
    """Returns a while in which a process cannot read the catalog, and in which it may restart."""
    seconds = rng.uniform(2, 12)
    steps = [Step(at=at, kind=StepKind.UNREADABLE, target=target, seconds=seconds)]
    if target in shape.nodes() and rng.random() < 1 / 2:
        killed_at = at + rng.uniform(0, seconds / 2)
        steps.append(Step(at=killed_at, kind=StepKind.KILL, target=target, seconds=0.2))
    return steps


def _during_move(rng: Random, step: Step) -> Step:
    """Makes some kills at fault points happen while a shard is handed over."""
    is_kill = step.kind in AT_POINTS and rng.random() < _MOVE_POINT_SHARE
    return replace(step, point=_MOVE_POINT) if is_kill else step


def _words(rng: Random) -> str:
    return " ".join(f"w{rng.randrange(_WORDS)}" for _ in range(3))


def _fault(rng: Random, shape: Shape, kind: StepKind, seconds: float) -> Step:
    nodes, fronts = list(shape.nodes()), shape.front_names()
    journal = ["journal"] if shape.has_journal else []
    disks = {StepKind.POWER_LOSS, StepKind.FULL_DISK}
    alone = {StepKind.FULL_DISK, StepKind.LEAVE, StepKind.SNAPSHOT, *AT_POINTS}
    everyone = [*nodes, *journal] if kind in disks else [*nodes, *fronts, *journal]
    if kind in alone:
        everyone = nodes
    target = rng.choice(everyone)
    other = ""
    if kind is StepKind.BREAK:
        target, other = rng.sample([rng.choice(nodes), rng.choice([*fronts, *journal])], 2)
    elif kind is StepKind.CUT:
        others = [each for each in [*nodes, *fronts, *journal] if each != target]
        other = rng.choice(others) if others else target
        if journal and rng.random() < 1 / 2:  # the connections that writes depend on
            target, other = rng.sample([rng.choice(nodes), *journal], 2)
    amount = 0.0
    if kind is StepKind.BREAK:
        amount = rng.uniform(0, 1)
    elif kind is StepKind.SLOW_NETWORK:
        amount = rng.uniform(0.01, 0.5)
    elif kind is StepKind.SLOW_WORK:
        amount = rng.uniform(2, 200)
    elif kind is StepKind.CLOCK_JUMP:
        amount = rng.uniform(-0.45, 0.45)  # within the limit of --journal-skew
    return Step(
        at=rng.uniform(0, seconds),
        kind=kind,
        target="journal" if kind is StepKind.JOURNAL_FULL else target,
        other=other,
        point=rng.choice(_POINTS) if kind in AT_POINTS else "",
        seconds=rng.choice([0.1, 1.0, 3.0, 12.0]) * rng.uniform(0.5, 1.5),
        amount=amount,
    )
