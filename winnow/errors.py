"""The errors that Winnow raises deliberately.

Messages say what is wrong, with the value, and what to do. `winnow.rpc.status` maps errors to
gRPC statuses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

NOT_LOADED = "SHARD_NOT_LOADED"
"""Fault reason of `NotLoadedError`."""
LEAVING = "NODE_LEAVING"
"""Fault reason of `LeavingError`."""
RESTORING = "RESTORING_SHARD"
"""Fault reason of `RestoringError`."""
RESTORE_FAILED = "RESTORE_FAILED"
"""Fault reason of `RestoreFailedError`."""
ARCHIVE_UNREACHABLE = "ARCHIVE_UNREACHABLE"
"""Fault reason of `ArchiveUnreachableError`."""
WRITES_HELD = "WRITES_HELD"
"""Fault reason of `WritesHeldError`."""
INDEX_IS_COPY = "INDEX_IS_COPY"
"""Fault reason of `IndexIsCopyError`."""
NOT_WRITABLE = "SHARD_NOT_WRITABLE"
"""Fault reason of `NotWritableError`."""
TENANT_QUOTA = "TENANT_QUOTA"
"""Fault reason of errors of a tenant beyond its quota."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A machine-readable cause of an error, sent as `google.rpc.ErrorInfo`."""

    reason: str
    """Name of the cause, in capitals and underscores."""
    metadata: Mapping[str, str] = field(default_factory=dict)


class WinnowError(Exception):
    """An error that a user or an operator can act on."""

    public = ""
    """Message for callers without the scope `admin`, if the full message names machines, files or
    checksums; empty if they may see the full message.
    """

    def __init__(self, message: str = "", faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)

    def with_public(self, message: str) -> Self:
        """Sets `public`, and returns the error."""
        self.public = message
        return self


@dataclass(frozen=True, slots=True)
class Violation:
    """A field of a request that breaks a rule."""

    field: str
    description: str


class InvalidRequestError(WinnowError):
    """The request is invalid; a retry does not help."""

    def __init__(self, *violations: Violation) -> None:
        super().__init__("; ".join(f"{v.field}: {v.description}" for v in violations))
        self.violations = violations


def invalid_field(name: str, description: str) -> InvalidRequestError:
    """Returns the error of a request in which one field breaks a rule."""
    return InvalidRequestError(Violation(name, description))


class NotFoundError(WinnowError):
    """The request names something that does not exist."""


class UnauthenticatedError(WinnowError):
    """The key is missing or invalid."""


class PermissionDeniedError(WinnowError):
    """The key is valid but lacks the scope."""


class OverloadedError(WinnowError):
    """There is no capacity for the request now."""

    def __init__(
        self, message: str, retry_after: float = 0.1, faults: Sequence[Fault] = ()
    ) -> None:
        """`retry_after`: seconds to wait before a retry."""
        super().__init__(message, faults)
        self.retry_after = retry_after


class QuotaExceededError(WinnowError):
    """A tenant would store more than its quota. A retry helps only after it has deleted passages.

    The metadata of its fault has the limit, the quota and what is used.
    """

    def __init__(self, message: str, metadata: Mapping[str, str]) -> None:
        super().__init__(message, [Fault(TENANT_QUOTA, metadata)])

    @property
    def metadata(self) -> Mapping[str, str]:
        """The keys `limit`, `quota` and `used`."""
        return self.faults[0].metadata


def quota_error(tenant: str, limit: str, quota: int, used: int) -> QuotaExceededError:
    """Returns the error of a tenant that would store more than its quota.

    `limit`: what is limited, passages or bytes. `used`: how much of it is stored now.
    """
    return QuotaExceededError(
        f"tenant {tenant} would exceed its quota of {quota} {limit}: {used} are stored; delete "
        "passages, or ask an administrator for a larger quota",
        {"limit": limit, "quota": str(quota), "used": str(used)},
    )


class DeadlineExceededError(WinnowError):
    """The deadline has passed."""


class UnavailableError(WinnowError):
    """A required service cannot be reached, or is not ready."""


class NotLoadedError(UnavailableError):
    """A node runs but could not load its data. A retry does not help; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, [Fault(NOT_LOADED)])


class LeavingError(UnavailableError):
    """The node is shutting down and accepts no new work."""

    def __init__(self, message: str) -> None:
        super().__init__(message, [Fault(LEAVING)])


class RestoringError(UnavailableError):
    """The shard is archived, and is being restored. A retry helps once that is done."""

    def __init__(self, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message, [Fault(RESTORING), *faults])


class RestoreFailedError(UnavailableError):
    """The shard is archived, and could not be restored. A later call tries again."""

    reason = RESTORE_FAILED

    def __init__(self, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message, [Fault(self.reason), *faults])


class ArchiveUnreachableError(RestoreFailedError):
    """The archive that has the shard cannot be reached. A later call tries again."""

    reason = ARCHIVE_UNREACHABLE


class WritesHeldError(UnavailableError):
    """The index takes no writes for a moment, because an alias of it is being switched."""

    def __init__(self, message: str) -> None:
        super().__init__(message, [Fault(WRITES_HELD)])


class IndexIsCopyError(UnavailableError):
    """The index is a copy of another one, which takes the writes."""

    def __init__(self, message: str) -> None:
        super().__init__(message, [Fault(INDEX_IS_COPY)])


class NotServedError(UnavailableError):
    """The server does not serve this request; a retry does not help."""


class StoppedError(WinnowError):
    """Work was stopped because its caller cancelled it. No caller sees this error."""


class IdentityError(WinnowError):
    """Two artefacts do not match: they differ in encoder, bundle, index or dimension."""


class GenerationGoneError(WinnowError):
    """The shard no longer has the generation of a hit. Retrieve again."""


class NotWritableError(WinnowError):
    """The index is not configured to accept writes. The message says what to change."""

    def __init__(self, message: str) -> None:
        super().__init__(message, [Fault(NOT_WRITABLE)])


class ArtefactError(WinnowError):
    """A file of a bundle, head or index is missing, damaged or of an unknown format."""
