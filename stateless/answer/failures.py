"""Failures of shards: what each says, and the error of a caller who gets no answer for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from winnow.domain.coverage import ShardStatus
from winnow.errors import (
    DeadlineExceededError,
    Fault,
    NotLoadedError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)

_MOST_NAMED, _LONGEST_REASON = 8, 160
"""Most shards named, and most bytes of each reason. An error travels in the metadata of a call, of
which gRPC lets 8 KB through. It stands there twice, once with three bytes for each character that
is not ASCII.
"""
_SHARD = "SHARD_"
_REASONS = {
    ShardStatus.TIMEOUT: "no reply in time",
    ShardStatus.UNAVAILABLE: "none of its replicas could be reached",
    ShardStatus.OVERLOADED: "its nodes have too much to do",
    ShardStatus.FAILED: "its node failed",
    ShardStatus.NOT_LOADED: "its nodes could not load it",
}
"""What callers read of a shard that raised an error."""
_STATUSES = (
    (DeadlineExceededError, ShardStatus.TIMEOUT),
    (NotLoadedError, ShardStatus.NOT_LOADED),
    (UnavailableError, ShardStatus.UNAVAILABLE),
    (OverloadedError, ShardStatus.OVERLOADED),
)
_log = structlog.get_logger("stateless.answer.scatter")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a shard gave no result."""

    status: ShardStatus
    reason: str
    """The reason for every caller: names no machine, file or checksum."""
    retry_after: float = 0.0
    """Seconds after which an overloaded shard may be asked again, if it said so."""
    detail: str = ""
    """More, for the log and for administrators; empty if there is no more."""

    @property
    def full(self) -> str:
        """The reason with its detail."""
        return f"{self.reason}: {self.detail}" if self.detail else self.reason

    @classmethod
    def of(cls, shard: int, error: BaseException) -> "Failure":
        """The failure of a shard whose call raised `error`."""
        if not isinstance(error, WinnowError):
            _log.error("shard call failed unexpectedly", shard=shard, exc_info=error)
            reason = "internal error on the front node"
            return cls(ShardStatus.FAILED, reason, detail=repr(error))
        retry_after = error.retry_after if isinstance(error, OverloadedError) else 0.0
        status = status_of(error)
        return cls(status, _REASONS[status], retry_after, str(error))


LATE = Failure(ShardStatus.TIMEOUT, _REASONS[ShardStatus.TIMEOUT])


def status_of(error: WinnowError) -> ShardStatus:
    """The status of a shard that raised `error`."""
    found = (status for kind, status in _STATUSES if isinstance(error, kind))
    return next(found, ShardStatus.FAILED)


def incomplete(failures: Mapping[int, Failure]) -> WinnowError:
    """The error of a caller who needs every shard."""
    return error_of(failures, "not every shard answered, and all were asked for")


def error_of(failures: Mapping[int, Failure], what: str) -> WinnowError:
    """The error of a caller who gets no answer because of these failures.

    Every shard late: DEADLINE_EXCEEDED. Every shard late or overloaded: RESOURCE_EXHAUSTED, after
    the longest wait that one asks for. Any other failure among them: UNAVAILABLE.
    """
    full = f"{what}: {_listed(failures, lambda failure: failure.full)}"
    public = f"{what}: {_listed(failures, lambda failure: failure.reason)}"
    return _worst(failures, full).with_public(public)


def failed_shards(error: WinnowError) -> list[tuple[int, ShardStatus]]:
    """The shards that `error_of` named, with their statuses."""
    return [
        (int(fault.metadata["shard"]), ShardStatus[fault.reason.removeprefix(_SHARD)])
        for fault in error.faults
        if fault.reason.startswith(_SHARD) and "shard" in fault.metadata
    ]


def _listed(failures: Mapping[int, Failure], text: Callable[[Failure], str]) -> str:
    some = sorted(failures.items())[:_MOST_NAMED]
    reasons = [f"shard {shard}: {_cut(text(failure))}" for shard, failure in some]
    if len(failures) > len(some):
        reasons.append(f"and {len(failures) - len(some)} more")
    return "; ".join(reasons)


def _worst(failures: Mapping[int, Failure], message: str) -> WinnowError:
    some = sorted(failures.items())[:_MOST_NAMED]
    faults = [Fault(f"{_SHARD}{f.status.name}", {"shard": str(shard)}) for shard, f in some]
    # a shard that was given up as the question allows did not fail: the others are the reason
    statuses = {failure.status for failure in failures.values()} - {ShardStatus.ADAPTIVE}
    if statuses <= {ShardStatus.TIMEOUT}:
        return DeadlineExceededError(message, faults)
    if statuses <= {ShardStatus.TIMEOUT, ShardStatus.OVERLOADED}:  # late nodes are busy, too
        wait = max(failure.retry_after for failure in failures.values())
        return OverloadedError(message, wait, faults)
    return UnavailableError(message, faults)


def _cut(reason: str) -> str:
    """The beginning of a reason; no character is cut in two."""
    return reason.encode(errors="replace")[:_LONGEST_REASON].decode(errors="ignore")
