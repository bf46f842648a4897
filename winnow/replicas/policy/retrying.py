"""Whether a failed request is retried on another replica.

This module knows the error, the number of retries and the time left. It does not know replicas or
calls. A failure is retried only if another replica may avoid it, and by default once: more retries
would multiply the load during overload (gRFC A6, https://github.com/grpc/proposal).
"""

from dataclasses import dataclass

from winnow.errors import GenerationGoneError, OverloadedError, UnavailableError, WinnowError

_FIRST_DELAY, _MAX_DELAY = 0.05, 1.0
"""Shortest and longest delay before a failed write is sent again, in seconds.

During the delay the write counts as pending, so that a slow shard makes the front refuse writes.
"""
_MAX_DOUBLINGS = 5
_RETRYABLE = (UnavailableError, OverloadedError, GenerationGoneError)


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How often a request is retried, and how much time a retry needs."""

    max_retries: int = 1
    """Maximum number of retries of one request; 0 disables them."""
    min_time_left: float = 0.005
    """Minimum seconds that must be left before the deadline for a retry."""
    repeat: bool = False
    """Whether a retry may go to the same replica if no other replica is preferred."""


def should_retry(
    settings: RetrySettings,
    error: WinnowError,
    retries: int,
    time_left: float,
    typical: float = 0.0,
) -> bool:
    """Whether to retry a request that failed with `error` on another replica.

    Args:
        settings: the limits of retries.
        error: the failure. It is retried if the replica was unavailable or overloaded, or no longer
            holds the generation. Other failures would repeat on every replica.
        retries: number of retries so far; hedges do not count.
        time_left: seconds until the deadline.
        typical: typical latency of such a request in seconds; 0 if it is not known.

    """
    in_time = time_left >= max(settings.min_time_left, typical)
    return isinstance(error, _RETRYABLE) and retries < settings.max_retries and in_time


def may_repeat(settings: RetrySettings, error: WinnowError) -> bool:
    """Whether a retry after `error` may go to the same replica, if there is no other.

    It may if the replica was unavailable, because another server may now have its address.
    """
    return settings.repeat and isinstance(error, UnavailableError)


def retry_delay(failures: int, time_left: float, requested: float = 0.0) -> float | None:
    """Seconds to wait before a failed write is sent again; None if the write should fail.

    The write should fail if the delay exceeds the time left, or if the shard requests a longer
    delay than the maximum.

    Args:
        failures: number of failed attempts, from 1.
        time_left: seconds until the deadline.
        requested: delay in seconds that the shard requested as `retry_after`; 0 for none.

    """
    delay = max(min(_FIRST_DELAY * 2 ** min(failures - 1, _MAX_DOUBLINGS), _MAX_DELAY), requested)
    return delay if delay < time_left and requested <= _MAX_DELAY else None
