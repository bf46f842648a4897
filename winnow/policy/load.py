"""Admission by load: which requests are admitted, and how many passages are read for each.

Knows the reads in flight, the client of each, and the seconds per read; does not know what a read
is or which process does it. A read is one passage, because questions differ in their number of
passages. The reads in flight take about their number times the seconds per read (Little's law,
1961). So when a request arrives, its wait is known, and whether it can meet its deadline.

Under load, requests first get fewer reads (brown-out: Klein et al., 2014), and only then are
refused. Readers serve clients in turn, and each client gets at most its share, which is done in
time. So no client takes the capacity that others need.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.errors import DeadlineExceededError, OverloadedError
from winnow.policy.fairness import FairShares
from winnow.policy.shares import smallest_count_for_share

_ROUNDING = 1e-6
"""Tolerance for rounding numbers of reads, so that 79.9999999 counts as 80."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """Limits of admission by load. All shares are from 0 to 1."""

    max_reads: int = 2_000
    """Maximum number of reads in flight, which bounds the queue."""
    horizon: float = 2.0
    """Maximum seconds of work in flight. Longer deadlines do not lengthen the queue.
    """
    usable_share: float = 0.8
    """Share of the remaining time that the estimated time of all reads may take."""
    calm_share: float = 0.5
    """Fill level, as a share of the unreserved capacity, up to which all reads are granted."""
    min_granted_share: float = 0.3
    """Smallest share of the requested reads to grant. If less is possible, a request is refused.

    1 disables the brown-out.
    """
    reserved_share: float = 0.2
    """Share of the capacity that is reserved for new clients, while there are several clients."""
    presence_seconds: float = 10.0
    """Seconds after its last request for which a client counts as present."""
    refusal_seconds: float = 2.0
    """Seconds for which a refused client counts as wanting more."""
    min_retry_after: float = 0.05
    """Lower bound of `retry_after` in refusals, in seconds."""
    max_retry_after: float = 5.0
    """Upper bound of `retry_after` in refusals, in seconds."""

    @classmethod
    def all_or_nothing(cls, max_reads: int) -> "LoadSettings":
        """Limits of a server that grants all reads of a request, or refuses it as late."""
        return cls(
            max_reads=max_reads,
            horizon=math.inf,
            usable_share=1.0,
            min_granted_share=1.0,
            reserved_share=0.0,
            refusal_seconds=0.0,
        )


@dataclass(frozen=True, slots=True)
class Ticket:
    """An admitted request. Its holder must release it, once."""

    client: str
    requested: int
    """Number of passages that were requested to be read."""
    reads: int
    """Number of passages that may be read; fewer than requested in a brown-out."""


class ReadLoad:
    """The reads in flight of one process."""

    def __init__(
        self,
        settings: LoadSettings,
        clock: Clock,
        pace: Callable[[], float | None],
        others: Callable[[], int] = lambda: 0,
    ) -> None:
        """Begins without reads.

        `pace`: returns the seconds per read while readers are busy; None if not known yet, and then
        only `max_reads` bounds the queue. The pace must be that of the readers, not of answers:
        answers may wait for other steps while readers are idle.

        `others`: returns the number of reads that other processes admitted for the same readers.
        """
        self._settings, self._pace, self._others = settings, pace, others
        self._shares = FairShares(
            settings.reserved_share, settings.presence_seconds, settings.refusal_seconds, clock
        )

    @property
    def reads_in_flight(self) -> int:
        """Number of reads in flight."""
        return self._shares.total

    def in_flight(self, client: str) -> int:
        """Number of reads in flight of one client."""
        return self._shares.in_flight(client)

    def admit(self, requested: int, seconds_left: float, client: str = "", unit: int = 1) -> Ticket:
        """Admits a request for `requested` reads, or fewer.

        A request is always admitted if no read is in flight, because the estimate may be outdated.

        Args:
            requested: number of reads, a multiple of `unit`.
            seconds_left: seconds until the deadline of the request.
            client: key of the caller, for fair sharing.
            unit: reads are granted in multiples of this number, such as one for each shard.

        Raises:
            DeadlineExceededError: the deadline has passed.
            OverloadedError: not even the smallest share of the reads can be done in time. The error
                states when to try again.

        """
        if seconds_left <= 0:
            raise DeadlineExceededError("the deadline passed before the request was admitted")
        granted, room, limit = self._reads_to_grant(requested, seconds_left, client, unit)
        min_reads = self._min_reads(requested, unit)
        if granted < min_reads:
            self._shares.refuse(client, min_reads)
            raise self._refusal(min_reads, room, limit)
        self._shares.take(client, granted)
        return Ticket(client, requested, granted)

    def would_grant_all(
        self, requested: int, seconds_left: float, client: str = "", unit: int = 1
    ) -> bool:
        """Whether `admit` would grant all reads now; changes nothing."""
        # fast path for a thousand concurrent callers: the total of reads alone often decides
        filled = self.reads_in_flight / self._limit(math.inf)
        if (
            seconds_left <= 0
            or self._reduced(requested, self._min_reads(requested, unit), filled) < requested
        ):
            return False
        return self._reads_to_grant(requested, seconds_left, client, unit)[0] >= requested

    def refuses(self, client: str, requested: int) -> bool:
        """Whether `admit` would refuse `requested` reads of a client with any deadline.

        Changes nothing, unlike a refusal by `admit`.
        """
        min_reads, capacity = self._min_reads(requested, 1), self._limit(math.inf)
        room = self._shares.room(client, capacity, capacity, min_reads, self._others())
        return self.reads_in_flight > 0 and room + _ROUNDING < min_reads

    def release(self, ticket: Ticket) -> None:
        """Ends an admitted request."""
        self._shares.release(ticket.client, ticket.reads)

    def _reads_to_grant(
        self, requested: int, seconds_left: float, client: str, unit: int
    ) -> tuple[int, float, float]:
        """Returns the reads to grant, the reads that the client may add, and `_limit` of the time.

        The request must be refused if the reads to grant are fewer than `_min_reads`.
        """
        min_reads, limit = self._min_reads(requested, unit), self._limit(seconds_left)
        others = self._others()
        share = self._shares.share(client, limit, others)
        capacity = self._limit(math.inf)
        room = self._shares.room(client, limit, capacity, min_reads, others, share) + _ROUNDING
        filled = (
            max(self.reads_in_flight / capacity, self._shares.in_flight(client) / share)
            if share
            else 1.0
        )
        granted = min(self._reduced(requested, min_reads, filled), math.floor(room)) // unit * unit
        return granted if self.reads_in_flight else max(granted, min_reads), room, limit

    def _min_reads(self, requested: int, unit: int) -> int:
        """Returns the smallest number of reads to grant, in whole units; at least one unit."""
        least = math.ceil(
            smallest_count_for_share(self._settings.min_granted_share, requested) / unit
        )
        return max(min(least, self._settings.max_reads // unit), 1) * unit

    def _limit(self, seconds_left: float) -> float:
        """Returns the maximum number of reads in flight that can all be done in time."""
        settings, pace = self._settings, self._pace()
        max_reads = float(settings.max_reads)
        usable_seconds = min(seconds_left, settings.horizon) * settings.usable_share
        return min(max_reads, max(usable_seconds / pace, 0.0)) if pace else max_reads

    def _reduced(self, requested: int, min_reads: int, filled: float) -> int:
        """Returns the number of passages to read.

        This is the requested number up to the load `calm_share`, and then fewer, down to
        `min_reads`.
        """
        calm_share, open_share = self._settings.calm_share, 1 - self._settings.reserved_share
        pressure = (
            min(max((filled / open_share - calm_share) / (1 - calm_share), 0.0), 1.0)
            if calm_share < 1
            else 0.0
        )
        return math.ceil(requested - (requested - min_reads) * pressure)

    def _refusal(self, min_reads: int, room: float, limit: float) -> OverloadedError:
        settings = self._settings
        wait = (min_reads - room) * (self._pace() or 0.0)
        wait = min(max(wait, settings.min_retry_after), settings.max_retry_after)
        readable = math.floor(limit + _ROUNDING)
        reason = (
            f"only {readable} can be read in time"
            if self.reads_in_flight + min_reads > readable
            else "the remaining room is reserved for other clients"
        )
        return OverloadedError(
            f"no room for {min_reads} more passages: {self.reads_in_flight} are waiting to be "
            f"read, and {reason}; try again in {wait:.2f} s",
            wait,
        )
