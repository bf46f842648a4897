"""How far the replicas of a shard have got in its log, and which of them a request needs.

Knows the numbers of writes and a clock; does not know what logs hold. Replicas are polled one
after the other while writes go on, so at any moment one seems to be a little further than another.
A replica lags only if it does not have what another had a while ago.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from winnow.deadline import Clock
from winnow.policy.logs import same_log
from winnow.replicas.policy.replicas import Replica

SETTLED = 2.0
"""Seconds after which every replica should have a write, and its front should know: two polls and
more.
"""
_STEP = 0.1
"""Seconds between two records: many answers come in that time."""


class ReplicaProgress:
    """The writes that one replica is known to have."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known = deque([(clock(), 0)])
        """Times, and the last write that it was known to have at each."""
        self._told, self._log_id = 0, ""

    @property
    def sequence(self) -> int:
        """The last write that it is known to have; 0 if it has none."""
        return self._known[-1][1]

    @property
    def settled(self) -> int:
        """The last write that it was known to have `SETTLED` ago: others should have it by now."""
        until = self._clock() - SETTLED
        while len(self._known) > 1 and self._known[1][0] <= until:
            self._known.popleft()
        since, sequence = self._known[0]
        return sequence if since <= until else 0

    def reached(self, sequence: int, log_id: str = "") -> None:
        """Records that it answered with this write. A late reply takes nothing back, and a reply of
        another log than the last poll named is ignored.
        """
        if sequence > self.sequence and same_log(log_id, self._log_id):
            self._add(sequence)

    def told(self, sequence: int, log_id: str = "") -> None:
        """Records the last write that a poll reported. It may have answered with later ones since.
        Only if the poll reports less than an earlier poll, or another log, was it started again.
        """
        if sequence < self._told or not same_log(log_id, self._log_id):
            self._known.clear()
            self._known.append((self._clock(), sequence))
        self._told, self._log_id = sequence, log_id
        self.reached(sequence)

    def _add(self, sequence: int) -> None:
        now, (last, _) = self._clock(), self._known[-1]
        if len(self._known) > 1 and now - last < _STEP:
            self._known.pop()
            now = last
        self._known.append((now, sequence))


class NeededWrite:
    """The preference of a request that needs a write: replicas that have it and do not lag."""

    def __init__(self, progress: "ShardProgress", sequence: int) -> None:
        self._progress, self._sequence = progress, sequence

    def select(self, replicas: Sequence[Replica]) -> Sequence[Replica]:
        """The replicas that have the write and do not lag, as far as there are any."""
        sequence = self._progress.sequence
        having = [r for r in replicas if sequence(r) >= self._sequence] or replicas
        current = [r for r in having if not self._progress.lags(r)]
        most = max(map(sequence, having), default=0)
        return current or [r for r in having if sequence(r) == most]

    def may_wait(self, replica: Replica) -> bool:
        """Whether the replica is not known to have the write yet."""
        return self._sequence > self._progress.sequence(replica)


class ShardProgress:
    """How far the replicas of one shard have got in its log."""

    def __init__(self, clock: Clock, replicas: Callable[[], Mapping[str, Replica]]) -> None:
        """`replicas` returns the present ones, by address."""
        self._clock, self._replicas = clock, replicas
        self._known: dict[Replica, ReplicaProgress] = {}

    def of(self, replica: Replica) -> ReplicaProgress:
        """The progress of one replica."""
        found = self._known.get(replica)
        if found is None:
            found = self._known[replica] = ReplicaProgress(self._clock)
        return found

    def sequence(self, replica: Replica) -> int:
        """The last write that a replica is known to have."""
        return self.of(replica).sequence

    def told(self, sequences: Mapping[str, int], log_id: str = "") -> None:
        """Replicas, by address, said what their last writes are, in the log of the shard."""
        present = self._replicas()
        kept = {*present.values(), *(r for r in self._known if r.outstanding)}
        self._known = {r: progress for r, progress in self._known.items() if r in kept}
        for address, sequence in sequences.items():
            if address in present:
                self.of(present[address]).told(sequence, log_id)

    def behind(self) -> dict[str, int]:
        """How many writes each replica is behind the one that has most, as far as is known."""
        known = {address: self.sequence(r) for address, r in self._replicas().items()}
        most = max(known.values(), default=0)
        return {address: most - sequence for address, sequence in known.items()}

    def lags(self, replica: Replica) -> bool:
        """Whether a replica does not have what another one had a while ago."""
        sequence = self.sequence(replica)
        return any(self.of(other).settled > sequence for other in self._replicas().values())

    def lagging(self) -> set[str]:
        """The addresses of the replicas that lag."""
        return {address for address, r in self._replicas().items() if self.lags(r)}
