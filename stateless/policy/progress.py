"""Which writes of the shard's log each replica has, and which replicas a request may use.

This module knows sequence numbers of writes and a clock. It does not know the writes. Replicas are
polled one after another while writes arrive, so a replica that was polled later seems to be ahead.
A replica lags only if it lacks a write that another replica had some time ago.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from winnow.deadline import Clock
from winnow.policy.logs import same_log
from winnow.replicas.policy.replicas import Replica

SETTLED_SECONDS = 2.0
"""Seconds after which every replica should have a write, and several polls should have seen it."""
_RECORD_INTERVAL = 0.1
"""Minimum seconds between two entries of a history: many answers may arrive in that time."""


class ReplicaProgress:
    """The writes that one replica is known to have."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._history = deque([(clock(), 0)])
        """Pairs of a time and the number of the last write that was known at that time."""
        self._polled, self._log_id = 0, ""

    @property
    def sequence(self) -> int:
        """Number of the last write that the replica is known to have; 0 for none."""
        return self._history[-1][1]

    @property
    def settled(self) -> int:
        """Number of the last write that the replica was known to have `SETTLED_SECONDS` ago."""
        until = self._clock() - SETTLED_SECONDS
        while len(self._history) > 1 and self._history[1][0] <= until:
            self._history.popleft()
        since, sequence = self._history[0]
        return sequence if since <= until else 0

    def record_answer(self, sequence: int, log_id: str = "") -> None:
        """Records the last write that an answer included.

        Ignores an earlier write than the last known one, and an answer from another log than the
        last poll reported.
        """
        if sequence > self.sequence and same_log(log_id, self._log_id):
            self._add(sequence)

    def record_poll(self, sequence: int, log_id: str = "") -> None:
        """Records the last write that a poll reported.

        If the poll reports an earlier write than the last poll, or another log, the replica was
        restarted and its history is cleared. Answers may have included later writes than a poll.
        """
        if sequence < self._polled or not same_log(log_id, self._log_id):
            self._history.clear()
            self._history.append((self._clock(), sequence))
        self._polled, self._log_id = sequence, log_id
        self.record_answer(sequence)

    def _add(self, sequence: int) -> None:
        now, (last, _) = self._clock(), self._history[-1]
        if len(self._history) > 1 and now - last < _RECORD_INTERVAL:
            self._history.pop()
            now = last
        self._history.append((now, sequence))


class NeededWrite:
    """The `Preference` of a request that needs a write: replicas that have it and do not lag."""

    def __init__(self, progress: "ShardProgress", sequence: int) -> None:
        self._progress, self._sequence = progress, sequence

    def select(self, replicas: Sequence[Replica]) -> Sequence[Replica]:
        """Prefers replicas that have the write, and of these replicas that do not lag.

        If all lag, prefers the replicas with the most writes.
        """
        sequence = self._progress.sequence
        with_write = [r for r in replicas if sequence(r) >= self._sequence] or replicas
        current = [r for r in with_write if not self._progress.lags(r)]
        latest = max(map(sequence, with_write), default=0)
        return current or [r for r in with_write if sequence(r) == latest]

    def may_wait(self, replica: Replica) -> bool:
        """Whether the replica is not known to have the write, so that it may wait for the write."""
        return self._sequence > self._progress.sequence(replica)


class ShardProgress:
    """The writes that the replicas of one shard are known to have."""

    def __init__(self, clock: Clock, replicas: Callable[[], Mapping[str, Replica]]) -> None:
        """`replicas` returns the current replicas, by address."""
        self._clock, self._replicas = clock, replicas
        self._progress: dict[Replica, ReplicaProgress] = {}

    def progress_of(self, replica: Replica) -> ReplicaProgress:
        """Returns the progress of one replica."""
        progress = self._progress.get(replica)
        if progress is None:
            progress = self._progress[replica] = ReplicaProgress(self._clock)
        return progress

    def sequence(self, replica: Replica) -> int:
        """Number of the last write that a replica is known to have."""
        return self.progress_of(replica).sequence

    def record_poll(self, sequences: Mapping[str, int], log_id: str = "") -> None:
        """Records the last write that each replica reported to a poll, by address.

        `log_id` names the log in which all of these writes are.
        """
        present = self._replicas()
        kept = {*present.values(), *(r for r in self._progress if r.outstanding)}
        self._progress = {r: progress for r, progress in self._progress.items() if r in kept}
        for address, sequence in sequences.items():
            if address in present:
                self.progress_of(present[address]).record_poll(sequence, log_id)

    def missing_writes(self) -> dict[str, int]:
        """Number of writes that each replica lacks and the most advanced one has, by address."""
        sequences = {address: self.sequence(r) for address, r in self._replicas().items()}
        latest = max(sequences.values(), default=0)
        return {address: latest - sequence for address, sequence in sequences.items()}

    def lags(self, replica: Replica) -> bool:
        """Whether a replica lacks a write that another replica had `SETTLED_SECONDS` ago."""
        sequence = self.sequence(replica)
        return any(
            self.progress_of(other).settled > sequence for other in self._replicas().values()
        )

    def lagging_addresses(self) -> set[str]:
        """The addresses of the replicas that lag."""
        return {address for address, r in self._replicas().items() if self.lags(r)}
