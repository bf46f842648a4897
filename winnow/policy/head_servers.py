"""Which head server is asked for which head, and which servers are left out for a while.

Knows servers by name, how calls to them ended, and a clock; knows neither calls nor channels. A
server that fails is ejected and probed as a replica is (`outliers`); meanwhile its heads are asked
for at their second choice, which has to load them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from winnow.deadline import Clock
from winnow.errors import (
    IdentityError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.replicas.policy.outcomes import ReplicaOutcome, outcome_of
from winnow.replicas.policy.outliers import OutlierSettings, ReplicaRecord, Standing
from winnow.replicas.policy.placement import Placement

OUTLIERS = OutlierSettings(silence=0.1)
"""A head server answers by its caller's deadline whatever its heads do, so silence means more than
it does at a content node."""
_MAY_BE_OTHERWISE_ELSEWHERE = (UnavailableError, OverloadedError)
_NONE: Mapping[str, str] = MappingProxyType({})


def worth_another_server(failure: WinnowError | None) -> bool:
    """Whether another server may apply a head that failed: it may have it in memory, or room, or
    reach its store. Not one that was late: another server would first have to load it, too.
    """
    return isinstance(failure, _MAY_BE_OTHERWISE_ELSEWHERE)


def call_worth_another_server(error: WinnowError) -> bool:
    """The same of a call that failed as a whole: it may be this server alone that has another
    encoder, or is broken.
    """
    return not isinstance(error, InvalidRequestError)


@dataclass(frozen=True, slots=True)
class HeadServerCall:
    """Heads to ask a server for. Whoever begins one ends it, once."""

    server: str
    heads: tuple[str, ...]
    probe: bool
    began: float


class HeadServers:
    """The head servers that are known."""

    def __init__(self, clock: Clock, settings: OutlierSettings = OUTLIERS) -> None:
        self._settings, self._clock = settings, clock
        self._records: dict[str, ReplicaRecord] = {}
        self._placement = Placement(())

    @property
    def known(self) -> frozenset[str]:
        """All of them, also those that are left out."""
        return frozenset(self._records)

    @property
    def left_out(self) -> int:
        """How many are left out now."""
        return sum(map(self.is_left_out, self._records))

    def is_left_out(self, server: str) -> bool:
        """Whether a server gets no calls, or only one at a time to try it."""
        record = self._records.get(server)
        return record is not None and record.standing is not Standing.ACTIVE

    def update(self, servers: Collection[str]) -> None:
        """From now on these are the servers; what is known of those that stay is kept."""
        if self.known != frozenset(servers):
            self._records = {
                each: self._records.get(each) or ReplicaRecord(self._settings, self._clock)
                for each in servers
            }
            self._placement = Placement(servers)

    def begin(self, heads: Sequence[str], tried: Mapping[str, str] = _NONE) -> list[HeadServerCall]:
        """A call for each server that is to be asked, so that no head is in two of them.

        A head is asked for at its first choice that is not left out, or at its very first one where
        all are. A head that has no choice is in no call.

        Args:
            heads: distinct.
            tried: where a head was asked for already. With these nobody is probed: they must not
                wait for another server that may hang.

        """
        takes = {each: self._takes(record, not tried) for each, record in self._records.items()}
        chosen: dict[str, list[str]] = {}
        for head in heads:
            left = [each for each in self._placement.order(head) if each != tried.get(head)]
            if left:
                server = next((each for each in left if takes[each]), left[0])
                chosen.setdefault(server, []).append(head)
        now = self._clock()
        return [
            HeadServerCall(server, tuple(found), self._records[server].begin(), now)
            for server, found in chosen.items()
        ]

    def answered(self, call: HeadServerCall) -> None:
        """Counts out a call that got its answer."""
        self._end(call, ReplicaOutcome.ANSWERED)

    def failed(self, call: HeadServerCall, error: WinnowError | None) -> None:
        """Counts out a call that failed, or was given up by its caller (None)."""
        waited = self._clock() - call.began
        # one with another encoder does not come to have this one while somebody waits
        hopeless = isinstance(error, IdentityError)
        self._end(call, outcome_of(error, waited, self._settings.silence), hopeless)

    def _end(self, call: HeadServerCall, outcome: ReplicaOutcome, hopeless: bool = False) -> None:
        record = self._records.get(call.server)
        if record is None:  # it has left meanwhile
            return
        deserved = record.end(call.probe, outcome)
        if deserved or (hopeless and record.standing is Standing.ACTIVE):
            record.eject()

    def _takes(self, record: ReplicaRecord, probes: bool) -> bool:
        return record.standing is Standing.ACTIVE or (probes and record.wants_probe(brief=True))
