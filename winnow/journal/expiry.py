"""Expiry of journal entries: followers skip an entry that the journal stored too late. Pure.

The problem: sent bytes may reach the journal long after the writer gave up, because a client, a
system or a link buffered them. A failed write that is applied then would undo a newer acknowledged
write. So each entry has an expiry, and followers skip an entry that was stored after its expiry.

The rules, where `skew` limits the seconds between the clocks of writer and journal:

1. A writer that publishes at `now` and gives up after `seconds` sets the expiry
   `now + seconds - skew`. It reports a failed write only after `seconds`, unless it knows that
   nothing was sent.
2. An entry is skipped if the journal's timestamp of the entry is later than its expiry. Both are
   stored with the entry, so all followers skip the same entries at any time.
3. A write is acknowledged once the writer's own replica has read its entry from the journal and
   applied it. The acknowledgement of the journal is not enough.

No acknowledged write is skipped: the writer's replica compared the same two values as every other
replica, even if clocks differ (2, 3). No failed write undoes a newer one: an applied entry has a
timestamp of at most `now + seconds - skew`. So it was stored before `now + seconds` by the writer's
clock, and thus before the failure was reported (1). Later writes have later sequence numbers.

If clocks differ by more than `skew`: when the journal's clock is ahead, writes fail, and nothing is
lost. When it is behind, a failed write may still be applied after the failure was reported, within
as many seconds as the difference exceeds `skew`.

An entry without an expiry was written by an older version, and never expires.
"""

from dataclasses import dataclass
from datetime import datetime

from winnow.errors import DeadlineExceededError

EXPIRY_HEADER = "Winnow-Expires"
"""Name of the header with the expiry of an entry, in milliseconds since 1970."""
SKEW = 1.0
"""Default limit of seconds between the clocks of writers and journal."""
MAX_PUBLISH_SECONDS = 2.0
"""Limit of seconds for publishing an entry, in addition to the skew."""
_MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True)
class PublishWindow:
    """The time window in which a writer publishes one entry."""

    seconds: float
    """Seconds until the writer gives up."""
    expires_at: float
    """Expiry of the entry, in seconds since 1970."""

    @classmethod
    def starting(cls, now: float, remaining: float, skew: float) -> "PublishWindow":
        """Returns the window that starts at `now`, in seconds since 1970.

        Raises DeadlineExceededError if the writer's remaining seconds do not exceed the skew.
        """
        if remaining <= skew:
            raise DeadlineExceededError(
                f"{max(remaining, 0):.1f} seconds before the deadline are too few to publish the "
                f"writes, because clocks may differ by {skew:g} seconds (--journal-skew): set a "
                "later deadline"
            )
        seconds = min(remaining, MAX_PUBLISH_SECONDS + skew)
        return cls(seconds, now + seconds - skew)

    @property
    def header(self) -> str:
        """Value of the header `EXPIRY_HEADER`."""
        return str(int(self.expires_at * _MILLISECONDS))


def has_expired(header: str, stored_at: datetime) -> bool:
    """Returns whether an entry was stored after the expiry in its header; False without one."""
    return header.isdecimal() and stored_at.timestamp() * _MILLISECONDS > int(header)
