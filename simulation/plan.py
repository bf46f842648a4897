"""The plan of a simulation: what clients do, and which faults happen when.

It is a list of steps, so that it can be shortened. `simulation/drawing.py` makes it from a seed.
"""

from dataclasses import dataclass
from enum import Enum

ALIAS, FIRST_INDEX = "docs", "docs-1"
"""The alias of a named index, and the name of the index with which a simulation begins."""


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
AT_POINTS = frozenset([StepKind.KILL_AT, StepKind.POWER_LOSS_AT])
POWER_CUTS = _POWER_LOSSES | AT_POINTS | {StepKind.SNAPSHOT}
"""The kinds of steps of plans that only test what disks keep."""
CALLS = frozenset([StepKind.PUT, StepKind.DELETE, StepKind.ASK])
MOVES = frozenset([StepKind.MOVE, StepKind.SPLIT])
COMMANDS = frozenset([StepKind.REBUILD, StepKind.SWITCH, StepKind.KEEP_ALIAS])


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
    merge_after: int = 12
    syncs_journal: bool = True
    """Whether the journal syncs each entry before it acknowledges it."""

    @property
    def has_power_loss(self) -> bool:
        return bool({step.kind for step in self.steps} & _POWER_LOSSES)
