"""Whether a failed request is sent again, to another replica.

Knows the error, how often the request was sent and the time left; does not know replicas or calls.
Only a failure that another replica may avoid is retried, and once: more retries would multiply the
load just when there is too much of it (gRFC A6, https://github.com/grpc/proposal).
"""

from dataclasses import dataclass

from winnow.errors import GenerationGoneError, OverloadedError, UnavailableError, WinnowError

_FIRST_DELAY, _MAX_DELAY = 0.05, 1.0
"""Seconds before a failed write is sent again.

Meanwhile the write counts as pending. So callers notice a slow shard: further writes are refused.
"""
_MAX_DOUBLINGS = 5
_RETRYABLE = (UnavailableError, OverloadedError, GenerationGoneError)


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How often a request is retried, and how much time must be left for it."""

    max_retries: int = 1
    """Maximum number of retries of one request; 0 disables them."""
    min_time_left: float = 0.005
    """Minimum seconds that must be left before the deadline for a retry."""
    repeat: bool = False
    """Whether a retry may go to the same replica if no other is preferred."""


def should_retry(
    settings: RetrySettings,
    error: WinnowError,
    retries: int,
    time_left: float,
    typical: float = 0.0,
) -> bool:
    """Whether to send a request that ended in `error` to another replica, if there is one.

    Args:
        settings: the limits of retries.
        error: why it failed. Only an unavailable or overloaded replica, or a removed generation, is
            worth another replica; other failures would happen there, too, or the time is up.
        retries: how often it was retried already; hedges do not count.
        time_left: seconds before the deadline.
        typical: typical latency of such a request in seconds; 0 if not known.

    """
    in_time = time_left >= max(settings.min_time_left, typical)
    return isinstance(error, _RETRYABLE) and retries < settings.max_retries and in_time


def may_repeat(settings: RetrySettings, error: WinnowError) -> bool:
    """Whether a retry after `error` may go to the same replica, if there is no other.

    Only if the replica was unavailable: its address may lead to another server by now.
    """
    return settings.repeat and isinstance(error, UnavailableError)


def retry_delay(failures: int, time_left: float, requested: float = 0.0) -> float | None:
    """Seconds to wait before a failed write is sent again.

    None if the deadline leaves no time for it, or if the shard requests more than the longest
    delay: then the caller should get the error.

    Args:
        failures: number of failed attempts, from 1.
        time_left: seconds before the deadline.
        requested: seconds that the shard requested, as `retry_after`.

    """
    delay = max(min(_FIRST_DELAY * 2 ** min(failures - 1, _MAX_DOUBLINGS), _MAX_DELAY), requested)
    return delay if delay < time_left and requested <= _MAX_DELAY else None
