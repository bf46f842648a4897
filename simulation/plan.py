"""The plan of a simulation: what clients do, and which faults happen when. Pure.

A plan follows from a seed. It is a list of steps, so that it can be shortened.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

from simulation.fault_points import SYNC_POINT
from winnow.faultpoints import POINTS

ALIAS, FIRST_INDEX = "docs", "docs-1"
"""The alias of a named index, and the name of the index with which a simulation begins."""
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


class StepKind(Enum):
    """What happens in a step."""

    PUT = "put"
    DELETE = "delete"
    ASK = "ask"
    KILL = "kill"
    """A process ends as by kill -9, and starts again later."""
    KILL_AT = "kill at"
    """A node ends at the next fault point of a name, and starts again later."""
    LEAVE = "leave"
    """A node shuts down as after SIGTERM, and starts again later."""
    POWER_LOSS = "power loss"
    """The machine of a process loses power, and starts again later."""
    POWER_LOSS_AT = "power loss at"
    """The machine of a node loses power at the next fault point of a name."""
    PAUSE = "pause"
    """A process is stopped, and continues later."""
    CUT = "cut"
    """Messages of one direction are held back for a while."""
    BREAK = "broken connection"
    """Connections of one direction stall, then break. What was sent arrives later."""
    SLOW_NETWORK = "slow network"
    SLOW_WORK = "slow work"
    FULL_DISK = "full disk"
    CLOCK_JUMP = "clock jump"
    JOURNAL_FULL = "full journal"
    SNAPSHOT = "snapshot"
    """No fault: a snapshot of all shards of a node is taken, onto the disk of the node."""
    MOVE = "move"
    """No fault: a shard is assigned to another node."""
    SPLIT = "split"
    """No fault: a shard is split in two."""
    UNREADABLE = "unreadable catalog"
    """A process cannot read the catalog for a while."""
    REBUILD = "rebuild"
    """No fault: the command that copies the index into one with another bundle."""
    SWITCH = "switch"
    """No fault: the command that points the alias to the copy, which then has all writes."""
    KEEP_ALIAS = "keep the alias"
    """No fault: the command that points the alias to its present index, and ends other switches."""


_POWER_LOSSES = frozenset([StepKind.POWER_LOSS, StepKind.POWER_LOSS_AT])
_AT_POINTS = frozenset([StepKind.KILL_AT, StepKind.POWER_LOSS_AT])
POWER_CUTS = _POWER_LOSSES | _AT_POINTS | {StepKind.SNAPSHOT}
"""The kinds of steps of plans that only test what disks keep."""
_CALLS = frozenset([StepKind.PUT, StepKind.DELETE, StepKind.ASK])
MOVES = frozenset([StepKind.MOVE, StepKind.SPLIT])
COMMANDS = frozenset([StepKind.REBUILD, StepKind.SWITCH, StepKind.KEEP_ALIAS])
_NAMED_FAULTS = COMMANDS | {StepKind.UNREADABLE}
FAULTS = tuple(kind for kind in StepKind if kind not in _CALLS | MOVES | _NAMED_FAULTS)
_COMMAND_FAULTS = (
    *(2 * [StepKind.KILL]),
    *(2 * [StepKind.KILL_AT]),
    StepKind.PAUSE,
    StepKind.CUT,
    StepKind.BREAK,
)
"""Faults that happen to commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan."""

    at: float
    """Seconds since the start."""
    kind: StepKind
    client: int = 0
    tenant: str = ""
    """Tenant of a call; empty for an index without tenants."""
    id: str = ""
    text: str = ""
    version: int | None = None
    timeout: float = 0.0
    """Seconds until the deadline of a call."""
    waits_for_writes: bool = False
    """Whether a question names the last writes of all clients in `after`."""
    allows_partial: bool = True
    target: str = ""
    """Name of the process that a fault concerns."""
    other: str = ""
    """Name of the process that gets no messages of `target`."""
    point: str = ""
    """Name of a fault point."""
    number: int = 0
    """Chooses the shard that moves or splits, among the shards that there are then."""
    seconds: float = 0.0
    """Duration of a fault."""
    amount: float = 0.0
    """Strength of a fault."""

    def __str__(self) -> str:
        fields = [
            self.tenant,
            self.id,
            repr(self.text) if self.text else "",
            f"version {self.version}" if self.version is not None else "",
            f"timeout {self.timeout:.1f}" if self.timeout else "",
            "after its writes" if self.waits_for_writes else "",
            self.target,
            f"to {self.other}" if self.other else "",
            f"at {self.point}" if self.point else "",
            f"shard {self.number}" if self.kind in MOVES else "",
            f"for {self.seconds:.2f} s" if self.seconds else "",
            f"by {self.amount:.2f}" if self.amount else "",
        ]
        return f"{self.at:8.3f}  {self.kind.value} {' '.join(filter(None, fields))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The processes of a cluster."""

    shards: int = 3
    replicas: int = 2
    """Replicas of each shard. With more than one, they follow a journal."""
    together: bool = False
    """Whether a node has a replica of every shard, and not of one shard only."""
    fronts: int = 2
    clients: int = 4
    passages: int = 18
    """Passages of the index as it was built."""
    tenants: int = 0
    """Number of tenants of the index; 0 for an index without tenants."""
    is_assigned: bool = False
    """Whether the nodes follow an assignment, so that shards can move and split.

    Then there is one more node, which has no shards at first.
    """
    is_named: bool = False
    """Whether the index has a name and an alias in a catalog, which all nodes follow."""

    @property
    def alias(self) -> str:
        """The alias that clients use; empty without a catalog."""
        return ALIAS if self.is_named else ""

    @property
    def is_fixed(self) -> bool:
        """Whether each node always has the shards that it has at first."""
        return not (self.is_assigned or self.is_named)

    @property
    def has_journal(self) -> bool:
        return self.replicas > 1

    def nodes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shards that each content node has at first, by its name."""
        return {**self._holders(), "node-x": ()} if self.is_assigned else self._holders()

    def _holders(self) -> dict[str, tuple[int, ...]]:
        if self.together:
            everything = tuple(range(self.shards))
            return {f"node-{'abcdefgh'[replica]}": everything for replica in range(self.replicas)}
        if not self.has_journal:
            return {f"node-{shard}": (shard,) for shard in range(self.shards)}
        return {
            f"node-{shard}{'abcdefgh'[replica]}": (shard,)
            for shard in range(self.shards)
            for replica in range(self.replicas)
        }

    def tenant(self, client: int) -> str:
        """Returns the tenant of a client; empty in an index without tenants.

        Two clients of a tenant call different fronts.
        """
        return f"t{client // 2 % self.tenants}" if self.tenants else ""

    def terminal_names(self) -> list[str]:
        """Returns the names of the terminals in which commands run."""
        return ["terminal-0", "terminal-1"] if self.is_named else []

    def front_names(self) -> list[str]:
        return [f"front-{number}" for number in range(self.fronts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A simulation: its seed, its cluster, and its steps."""

    seed: int
    shape: Shape
    steps: tuple[Step, ...]
    seconds: float
    """When the last step may begin; the faults end soon after."""
    merge_after: int = 12
    faults: frozenset[StepKind] = field(default_factory=frozenset)
    """The kinds of faults that this plan has."""
    syncs_journal: bool = True
    """Whether the journal syncs each entry before it acknowledges it."""

    @property
    def has_power_loss(self) -> bool:
        return bool({step.kind for step in self.steps} & _POWER_LOSSES)


def make_plan(
    seed: int,
    shape: Shape | None = None,
    seconds: float = 20.0,
    *,
    power_cuts: bool = False,
    named: bool = False,
) -> Plan:
    """Returns the plan of a seed. Without `shape`, the cluster is drawn, too.

    With `power_cuts`, all faults are power losses and kills at fault points, and merges are
    frequent. With `named`, the index has a name, and is rebuilt.
    """
    rng, moving = Random(f"plan {seed}"), Random(f"moves {seed}")
    if shape is None:
        shape = replace(draw_shape(rng), is_assigned=moving.random() < _MOVES_SHARE)
        if Random(f"tenants {seed}").random() < _TENANTS_SHARE:
            shape = replace(shape, tenants=2, clients=4)
        if named or Random(f"names {seed}").random() < _NAMED_SHARE:
            shape = replace(shape, is_named=True, is_assigned=False, tenants=0)
            seconds = max(seconds, _NAMED_SECONDS)
    # few kinds in a plan: with all of them, little would succeed
    power_cuts = power_cuts or rng.random() < _POWER_CUT_SHARE
    kinds = [
        kind for kind in FAULTS if (kind in POWER_CUTS if power_cuts else rng.random() < 1 / 3)
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
    return Plan(
        seed=seed,
        shape=shape,
        steps=tuple(sorted(steps, key=lambda step: step.at)),
        seconds=seconds,
        merge_after=4 if power_cuts else rng.choice([4, 12, 1_000]),
        faults=frozenset(kinds),
        syncs_journal=syncs_journal,
    )


def draw_shape(rng: Random) -> Shape:
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
            point=rng.choice(_COMMAND_POINTS) if kind in _AT_POINTS else "",
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
    is_kill = step.kind in _AT_POINTS and rng.random() < _MOVE_POINT_SHARE
    return replace(step, point=_MOVE_POINT) if is_kill else step


def _words(rng: Random) -> str:
    return " ".join(f"w{rng.randrange(_WORDS)}" for _ in range(3))


def _fault(rng: Random, shape: Shape, kind: StepKind, seconds: float) -> Step:
    nodes, fronts = list(shape.nodes()), shape.front_names()
    journal = ["journal"] if shape.has_journal else []
    disks = {StepKind.POWER_LOSS, StepKind.FULL_DISK}
    alone = {StepKind.FULL_DISK, StepKind.LEAVE, StepKind.SNAPSHOT, *_AT_POINTS}
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
        point=rng.choice(_POINTS) if kind in _AT_POINTS else "",
        seconds=rng.choice([0.1, 1.0, 3.0, 12.0]) * rng.uniform(0.5, 1.5),
        amount=amount,
    )
