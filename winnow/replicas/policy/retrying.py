"""Whether a request that failed is sent again, to another replica.

Knows the error, how often the request was sent and the time left; does not know replicas or calls.
Only a failure that another replica may not have is retried, and once: more retries would multiply
the load just when there is too much of it (gRFC A6, https://github.com/grpc/proposal).
"""

from dataclasses import dataclass

from winnow.errors import GenerationGoneError, OverloadedError, UnavailableError, WinnowError

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds before a failed write is sent again. Until then it takes up room, so callers notice by
refusals that a shard is slow.
"""
_DOUBLINGS = 5
_RETRYABLE = (UnavailableError, OverloadedError, GenerationGoneError)


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How often, and with how much time left."""

    most: int = 1
    """Retries of one request, at most; 0 for none."""
    least_left: float = 0.005
    """Seconds below which another attempt is not worth it."""
    repeat: bool = False
    """Whether a retry may go to the same replica if no other is preferred."""


def should_retry(
    settings: RetrySettings, error: WinnowError, retried: int, left: float, typical: float = 0.0
) -> bool:
    """Whether to send a request that ended in `error` to another replica, if there is one.

    Args:
        settings: how often, and with how much time left.
        error: why it failed. Another replica may be there, have room, or still hold the
            generation; any other failure would happen there, too, or the time is up.
        retried: how often it was sent again already; hedges do not count.
        left: seconds before the deadline.
        typical: seconds that such a request takes, where that is known.

    """
    enough = left >= max(settings.least_left, typical)
    return isinstance(error, _RETRYABLE) and retried < settings.most and enough


def may_repeat(settings: RetrySettings, error: WinnowError) -> bool:
    """Whether the same replica may be asked again after `error`, if there is no other.

    Only if it was unavailable: behind its address may be another server by now.
    """
    return settings.repeat and isinstance(error, UnavailableError)


def pause(attempt: int, left: float, wanted: float = 0.0) -> float | None:
    """Seconds to wait before the next attempt.

    None if the deadline leaves no time for one, or if the shard asks for so long a wait that the
    caller should get its error.

    Args:
        attempt: how many have failed, from 1.
        left: seconds before the deadline.
        wanted: seconds that the shard said to wait.

    """
    wait = max(min(_FIRST_PAUSE * 2 ** min(attempt - 1, _DOUBLINGS), _LONGEST_PAUSE), wanted)
    return wait if wait < left and wanted <= _LONGEST_PAUSE else None
