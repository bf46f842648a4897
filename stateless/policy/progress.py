"""How far a replica has got in the log of its shard, now and a while ago.

Knows the numbers of writes and a clock; knows neither replicas nor logs. Replicas are looked at one
after the other while writes go on, so at any moment one is known to be a little further than
another. It lags only if it does not have what another had a while ago.
"""

from collections import deque

from winnow.deadline import Clock
from winnow.policy.logs import same_log

SETTLED = 2.0
"""Seconds after which every replica should know of a write, and its front of that: two looks and
more.
"""
_STEP = 0.1
"""Seconds below which nothing new is remembered: many answers come in that time."""


class ReplicaProgress:
    """The writes that one replica is known to have."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known = deque([(clock(), 0)])
        """When it was known to have got how far."""
        self._told, self._log_id = 0, ""

    @property
    def sequence(self) -> int:
        """The last write that it is known to have; 0 if it has none."""
        return self._known[-1][1]

    @property
    def settled(self) -> int:
        """The last write that it was known to have a while ago: others should have it by now."""
        until = self._clock() - SETTLED
        while len(self._known) > 1 and self._known[1][0] <= until:
            self._known.popleft()
        since, sequence = self._known[0]
        return sequence if since <= until else 0

    def reached(self, sequence: int, log_id: str = "") -> None:
        """It answered with this write; a reply that comes late takes nothing back, and one of
        another log than it told of says nothing.
        """
        if sequence > self.sequence and same_log(log_id, self._log_id):
            self._add(sequence)

    def told(self, sequence: int, log_id: str = "") -> None:
        """At the last look it said that this is its last write. It has answered with later ones
        since, perhaps; only if it says less than at another look, or names another log, was it
        started again.
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
