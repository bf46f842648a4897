"""When an entry of a journal expires, and whether it was stored too late. Pure.

The problem: bytes that a writer has sent may reach the journal long after the writer gave up, out
of a buffer of the client, of the system or of a link that was frozen. Applied then, a write that
failed would undo a newer one that was acknowledged. So each entry carries an expiry, and followers
skip an entry that the journal stored after it.

The rule, with `skew` the seconds by which the clocks of writer and journal may differ:

1. A writer that publishes at `now`, and gives up after `seconds`, writes the expiry
   `now + seconds - skew`. It says that a write failed only when `seconds` have passed, unless it
   knows that nothing was sent.
2. An entry is skipped if the journal's own timestamp of it is later than its expiry. Timestamp and
   expiry are stored with the entry, so all followers skip the same entries, whenever they read.
3. A write is acknowledged when the writer's own replica has read its entry from the journal and
   has applied it. The acknowledgement of the journal alone is not enough.

No write that was acknowledged is skipped: the writer's replica judged the same two values as every
other replica, even if clocks differ (2, 3). No write that failed undoes a newer one: an applied
entry has a timestamp of at most `now + seconds - skew`, so it was stored before `now + seconds` by
the writer's clock, that is before the failure was told (1). What was written after that has a later
place in the journal, and counts.

Clocks that differ by more than `skew`: if the journal's is ahead, writes fail, and nothing is lost.
If it is behind, a write that failed may still be applied for as long as it is behind beyond `skew`.

An entry without an expiry was written by an older version. It never expires.
"""

from dataclasses import dataclass
from datetime import datetime

from winnow.errors import DeadlineExceededError

EXPIRES = "Winnow-Expires"
"""The header of an entry that holds its expiry, in milliseconds since 1970."""
SKEW = 1.0
"""Seconds by which clocks may differ, unless something else is set."""
PATIENCE = 2.0
"""Seconds that storing an entry may take, beyond the skew."""
_MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True)
class PublishWindow:
    """The time in which a writer publishes one entry."""

    seconds: float
    """Until the writer gives up."""
    expires: float
    """The expiry of the entry, in seconds since 1970."""

    @classmethod
    def opened(cls, now: float, left: float, skew: float) -> "PublishWindow":
        """The window of a writer that has `left` seconds; `now` is seconds since 1970. Raises
        DeadlineExceededError if no time is left beyond the skew.
        """
        if left <= skew:
            raise DeadlineExceededError(
                f"{max(left, 0):.1f} seconds are left to publish the writes: give more than the "
                f"{skew:g} seconds by which clocks may differ (--journal-skew)"
            )
        seconds = min(left, PATIENCE + skew)
        return cls(seconds, now + seconds - skew)

    @property
    def header(self) -> str:
        """The value of the header `EXPIRES`."""
        return str(int(self.expires * _MILLISECONDS))


def has_expired(header: str, stored: datetime) -> bool:
    """Whether an entry with this value of `EXPIRES` was stored too late; never without a value."""
    return header.isdecimal() and stored.timestamp() * _MILLISECONDS > int(header)
