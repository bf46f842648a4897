"""Decides which requests are let in, and how many passages are read for each.

Knows the reads in hand, the client of each, and the pace of reading; does not know what a read is
or which process does it. Work is counted in passages to read, since questions differ in them. By
Little's law (1961) the reads in hand take their number times the seconds per read. So it is known
when a request arrives whether it can meet its deadline. Under pressure fewer passages are read for
it (brown-out: Klein et al., 2014) before it is refused. No client takes what others need: readers
serve clients in turn, so a client's share of all reads that can be in time can be in time for it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.errors import DeadlineExceededError, OverloadedError
from winnow.policy.fairness import FairShares
from winnow.policy.shares import at_least

_ROUNDING = 1e-6
"""Rounding of reads: 79.9999999 are 80."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """How much is let in. Shares are from 0 to 1."""

    most_reads: int = 2_000
    """Most reads in hand: the bound of the queue."""
    horizon: float = 2.0
    """Most seconds of work in hand. A longer deadline does not allow a longer queue, or it would
    take the turns of others.
    """
    usable: float = 0.8
    """Share of the time left that reads may take, by the estimate."""
    calm: float = 0.5
    """Share of the room, less what is kept, up to which all reads are granted."""
    least_share: float = 0.3
    """Share of the reads asked for below which a request is refused instead; 1: no brown-out."""
    kept: float = 0.2
    """Share of the room that is kept for new clients, while there are several clients."""
    here_for: float = 10.0
    """Seconds after its last request for which a client counts as present."""
    hungry_for: float = 2.0
    """Seconds for which a client that was refused counts as wanting more."""
    shortest_wait: float = 0.05
    """Shortest time that a refused client is told to wait, in seconds."""
    longest_wait: float = 5.0
    """Longest time that a refused client is told to wait, in seconds."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A request that was let in. Its holder must release it, once."""

    client: str
    asked: int
    reads: int
    """Number of passages that may be read: fewer than asked in a brown-out."""


class ReadLoad:
    """The reads in hand of one process."""

    def __init__(
        self,
        settings: LoadSettings,
        clock: Clock,
        pace: Callable[[], float | None],
        others: Callable[[], int] = lambda: 0,
    ) -> None:
        """Lets nothing in yet.

        `pace`: seconds per read while there are reads in hand; None if it is not known yet, when
        only `most_reads` bounds the queue. It must be the speed of the readers, not of answers:
        these may wait for something that hangs while the readers are idle. `others`: number of
        reads that other processes have let in for the same readers.
        """
        self._settings, self._pace, self._others = settings, pace, others
        self._shares = FairShares(settings.kept, settings.here_for, settings.hungry_for, clock)

    @property
    def reads(self) -> int:
        """Number of reads in hand."""
        return self._shares.total

    def held(self, client: str) -> int:
        """Number of reads in hand for one client."""
        return self._shares.held(client)

    def admit(self, asked: int, left: float, client: str = "", unit: int = 1) -> Ticket:
        """Lets a request in for `asked` reads, or fewer.

        With no read in hand it is let in by any estimate, which may be old.

        Args:
            asked: number of reads, a multiple of `unit`.
            left: seconds before its deadline.
            client: key of the caller, for fair sharing.
            unit: reads are granted in multiples of it: one for each shard, where all read alike.

        Raises:
            DeadlineExceededError: no time is left at all.
            OverloadedError: not even the least share of its reads can be done in time; says when
                to try again.

        """
        if left <= 0:
            raise DeadlineExceededError("the deadline passed before there was room")
        granted, room, limit = self._granted(asked, left, client, unit)
        fewest = self._fewest(asked, unit)
        if granted < fewest:
            self._shares.refuse(client, fewest)
            raise self._refusal(fewest, room, limit)
        self._shares.take(client, granted)
        return Ticket(client, asked, granted)

    def grants_all(self, asked: int, left: float, client: str = "", unit: int = 1) -> bool:
        """Whether `admit` would grant all reads now; changes nothing."""
        # a thousand clients may ask at once, and the reads in hand for all often decide alone
        filled = self.reads / self._limit(math.inf)
        if left <= 0 or self._dimmed(asked, self._fewest(asked, unit), filled) < asked:
            return False
        return self._granted(asked, left, client, unit)[0] >= asked

    def closed_to(self, client: str, asked: int) -> bool:
        """Whether a request of a client for `asked` reads would be refused with any deadline.

        It changes nothing, unlike a refusal.
        """
        fewest, whole = self._fewest(asked, 1), self._limit(math.inf)
        room = self._shares.room(client, whole, whole, fewest, self._others())
        return self.reads > 0 and room + _ROUNDING < fewest

    def release(self, ticket: Ticket) -> None:
        """Ends a request."""
        self._shares.give_back(ticket.client, ticket.reads)

    def _granted(self, asked: int, left: float, client: str, unit: int) -> tuple[int, float, float]:
        """The reads that are granted, less than the fewest if the request is refused; the room for
        its client; and the reads that can be done in time for all.
        """
        fewest, limit, others = self._fewest(asked, unit), self._limit(left), self._others()
        share = self._shares.share(client, limit, others)
        whole = self._limit(math.inf)
        room = self._shares.room(client, limit, whole, fewest, others, share) + _ROUNDING
        filled = max(self.reads / whole, self._shares.held(client) / share) if share else 1.0
        granted = min(self._dimmed(asked, fewest, filled), math.floor(room)) // unit * unit
        return granted if self.reads else max(granted, fewest), room, limit

    def _fewest(self, asked: int, unit: int) -> int:
        """The least share of the reads in whole units, at least one, if the queue holds it."""
        least = math.ceil(at_least(self._settings.least_share, asked) / unit)
        return max(min(least, self._settings.most_reads // unit), 1) * unit

    def _limit(self, left: float) -> float:
        """Reads that may be in hand so that all of them are done in time."""
        settings, pace = self._settings, self._pace()
        most, usable = float(settings.most_reads), min(left, settings.horizon) * settings.usable
        return min(most, max(usable / pace, 0.0)) if pace else most

    def _dimmed(self, asked: int, fewest: int, filled: float) -> int:
        """All reads while it is calm, then fewer and fewer down to the fewest."""
        calm, most = self._settings.calm, 1 - self._settings.kept
        pressure = min(max((filled / most - calm) / (1 - calm), 0.0), 1.0) if calm < 1 else 0.0
        return math.ceil(asked - (asked - fewest) * pressure)

    def _refusal(self, fewest: int, room: float, limit: float) -> OverloadedError:
        settings = self._settings
        wait = (fewest - room) * (self._pace() or 0.0)
        wait = min(max(wait, settings.shortest_wait), settings.longest_wait)
        return OverloadedError(
            f"no room for more passages: {fewest} asked, {self.reads} waiting to be read, "
            f"{math.floor(limit + _ROUNDING)} can be in time, and no client gets more than its "
            f"share; try again in {wait:.2f} s",
            wait,
        )
