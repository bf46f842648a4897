"""All errors that Winnow raises on purpose.

An error says what was wrong, with what value, and what to do. `winnow.rpc.status` maps errors to
gRPC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

NOT_LOADED = "SHARD_NOT_LOADED"
"""The reason of a `NotLoadedError`'s fault."""
LEAVING = "NODE_LEAVING"
"""The reason of a `LeavingError`'s fault."""
NOT_WRITABLE = "SHARD_NOT_WRITABLE"
"""The reason of a `NotWritableError`'s fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A part that failed, for programs: `google.rpc.ErrorInfo` on the wire."""

    reason: str
    """In capitals and underscores."""
    metadata: Mapping[str, str] = field(default_factory=dict)


class WinnowError(Exception):
    """An error that a user or an operator can act upon."""

    public = ""
    """Message for callers where the error's own names machines, files or checksums; else empty."""

    def __init__(self, message: str = "", faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)

    def with_public(self, message: str) -> Self:
        """Sets the message for callers; returns the error."""
        self.public = message
        return self


@dataclass(frozen=True, slots=True)
class Violation:
    """A field of a request that breaks a rule."""

    field: str
    description: str


class InvalidRequestError(WinnowError):
    """The request breaks the contract; sending it again cannot help."""

    def __init__(self, *violations: Violation) -> None:
        super().__init__("; ".join(f"{v.field}: {v.description}" for v in violations))
        self.violations = violations


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
        """`retry_after`: seconds before it makes sense to try again."""
        super().__init__(message, faults)
        self.retry_after = retry_after


class DeadlineExceededError(WinnowError):
    """The deadline has passed."""


class UnavailableError(WinnowError):
    """Something that is needed to answer cannot be reached, or is not ready."""


class NotLoadedError(UnavailableError):
    """A node runs but could not load its data, and a retry does not help; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, [Fault(NOT_LOADED)])


class LeavingError(UnavailableError):
    """A node ends and takes no new work."""

    def __init__(self, message: str) -> None:
        super().__init__(message, [Fault(LEAVING)])


class NotServedError(UnavailableError):
    """A server runs but does not serve the request; a retry does not help."""


class StoppedError(WinnowError):
    """Work was stopped because its caller is gone. No caller sees this error."""


class IdentityError(WinnowError):
    """Two artefacts do not belong together: another bundle, index or dimension."""


class GenerationGoneError(WinnowError):
    """A shard no longer holds the generation that a hit came from: retrieve again."""


class NotWritableError(WinnowError):
    """The index takes no writes in its present configuration; the message says what to change."""

    def __init__(self, message: str) -> None:
        super().__init__(message, [Fault(NOT_WRITABLE)])


class ArtefactError(WinnowError):
    """A file of a bundle or of an index is missing, damaged or of an unknown format."""
