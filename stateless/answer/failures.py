"""Failures of shards, and the errors of callers who get no answer because of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from winnow.domain.coverage import ShardStatus
from winnow.errors import (
    ArchiveUnreachableError,
    DeadlineExceededError,
    Fault,
    NotLoadedError,
    NotServedError,
    OverloadedError,
    RestoreFailedError,
    RestoringError,
    UnavailableError,
    WinnowError,
)

_MAX_NAMED_SHARDS, _MAX_REASON_BYTES = 8, 160
"""Maximum number of shards that an error names, and maximum bytes of each reason.

The metadata of a call, which gRPC limits to 8 KB, contains the error twice, once with three bytes
for each character that is not ASCII.
"""
_FAULT_PREFIX = "SHARD_"
_REASON_OF = {
    ShardStatus.TIMEOUT: "no reply in time",
    ShardStatus.UNAVAILABLE: "none of its replicas could be reached",
    ShardStatus.OVERLOADED: "its nodes are overloaded",
    ShardStatus.FAILED: "its node failed",
    ShardStatus.NOT_LOADED: "its nodes could not load it",
}
"""The reason of a failed shard that callers get, by status."""
_ARCHIVED: tuple[tuple[type[UnavailableError], str], ...] = (
    (RestoringError, "it is being restored from its archive"),
    (ArchiveUnreachableError, "its archive cannot be reached now"),
    (RestoreFailedError, "it cannot be restored from its archive now"),
)
"""The reasons of shards that are archived, by error; the first match counts."""
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
    """The reason for every caller. It names no machine, file or checksum."""
    retry_after: float = 0.0
    """Seconds after which an overloaded shard may be called again; 0 if the shard did not say."""
    detail: str = ""
    """Details for the log and for administrators; may be empty."""
    kind: type[UnavailableError] = field(default=UnavailableError, kw_only=True)
    """The kind of the error of a caller who gets no answer because of this failure alone."""

    @property
    def reason_with_detail(self) -> str:
        """The reason, and the detail if there is one."""
        return f"{self.reason}: {self.detail}" if self.detail else self.reason

    @classmethod
    def of(cls, shard: int, error: BaseException) -> "Failure":
        """Returns the failure of a shard whose call raised `error`; logs an unexpected error."""
        if not isinstance(error, WinnowError):
            _log.error("shard call failed unexpectedly", shard=shard, exc_info=error)
            reason = "internal error on the front node"
            return cls(ShardStatus.FAILED, reason, detail=repr(error))
        retry_after = error.retry_after if isinstance(error, OverloadedError) else 0.0
        status = status_of(error)
        # the reason why a node does not serve a call says what to update
        reason = error.public if isinstance(error, NotServedError) else ""
        kind = UnavailableError
        for archived, text in _ARCHIVED:
            if isinstance(error, archived):
                kind, reason = archived, text
                break
        reason = reason or _REASON_OF[status]
        return cls(status, reason, retry_after, str(error), kind=kind)


LATE = Failure(ShardStatus.TIMEOUT, _REASON_OF[ShardStatus.TIMEOUT])


def status_of(error: WinnowError) -> ShardStatus:
    """The status of a shard that raised `error`."""
    found = (status for kind, status in _STATUSES if isinstance(error, kind))
    return next(found, ShardStatus.FAILED)


def incomplete_error(failures: Mapping[int, Failure]) -> WinnowError:
    """Returns the error of a caller who forbids partial results."""
    return error_of(failures, "some shards failed, and partial results are forbidden")


def error_of(failures: Mapping[int, Failure], summary: str) -> WinnowError:
    """Returns the error of a caller who gets no answer because of these failures.

    It is a DeadlineExceededError if every failed shard was late, and an OverloadedError with the
    longest `retry_after` if every one was late or overloaded. Otherwise it is an UnavailableError:
    a RestoringError or a RestoreFailedError if all shards are archived and fail for this reason.
    """
    full = f"{summary}: {_list_failures(failures, lambda failure: failure.reason_with_detail)}"
    public = f"{summary}: {_list_failures(failures, lambda failure: failure.reason)}"
    return _error_with_faults(failures, full).with_public(public)


def failed_shards(error: WinnowError) -> list[tuple[int, ShardStatus]]:
    """Returns the shards that an error of `error_of` names, with their statuses."""
    return [
        (int(fault.metadata["shard"]), ShardStatus[fault.reason.removeprefix(_FAULT_PREFIX)])
        for fault in error.faults
        if fault.reason.startswith(_FAULT_PREFIX) and "shard" in fault.metadata
    ]


def _list_failures(failures: Mapping[int, Failure], text: Callable[[Failure], str]) -> str:
    some = sorted(failures.items())[:_MAX_NAMED_SHARDS]
    reasons = [f"shard {shard}: {_truncate_reason(text(failure))}" for shard, failure in some]
    if len(failures) > len(some):
        reasons.append(f"and {len(failures) - len(some)} more")
    return "; ".join(reasons)


def _error_with_faults(failures: Mapping[int, Failure], message: str) -> WinnowError:
    some = sorted(failures.items())[:_MAX_NAMED_SHARDS]
    faults = [Fault(f"{_FAULT_PREFIX}{f.status.name}", {"shard": str(shard)}) for shard, f in some]
    # shards that were given up early, as the question allows, do not decide the error
    counted = [each for each in failures.values() if each.status is not ShardStatus.ADAPTIVE]
    statuses = {failure.status for failure in counted}
    if statuses <= {ShardStatus.TIMEOUT}:
        return DeadlineExceededError(message, faults)
    if statuses <= {ShardStatus.TIMEOUT, ShardStatus.OVERLOADED}:  # late nodes are busy, too
        wait = max(failure.retry_after for failure in failures.values())
        return OverloadedError(message, wait, faults)
    kinds = {failure.kind for failure in counted}
    kind = kinds.pop() if len(kinds) == 1 else UnavailableError
    return kind(message, faults)


def _truncate_reason(reason: str) -> str:
    """Returns the first bytes of a reason, in whole characters."""
    return reason.encode(errors="replace")[:_MAX_REASON_BYTES].decode(errors="ignore")
