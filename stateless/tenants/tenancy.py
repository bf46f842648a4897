"""The tenants of one index: whose request it is, and what its caller may see of the cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from winnow import caller
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.write import Position
from winnow.errors import (
    ArchiveUnreachableError,
    DeadlineExceededError,
    IdentityError,
    IndexIsCopyError,
    InvalidRequestError,
    NotFoundError,
    NotWritableError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RestoreFailedError,
    RestoringError,
    UnauthenticatedError,
    UnavailableError,
    WinnowError,
    invalid_field,
)
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.policy.tenants import TenantRights, choose_tenant
from winnow.stateless.tenants.positions import PositionCipher
from winnow.stateless.tenants.quotas import NO_LIMITS, UNLIMITED, TenantLimits, TenantQuotas

_ADMIN = "admin"
_OWN_ERRORS = (
    IndexIsCopyError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    QuotaExceededError,
    UnauthenticatedError,
)
"""Errors that depend only on the request, its key and what its tenant has stored."""
_MESSAGES: tuple[tuple[type[WinnowError], str], ...] = (
    (DeadlineExceededError, "the deadline passed before the request was done"),
    (RestoringError, "the passages are being restored from an archive: try again"),
    (ArchiveUnreachableError, "the archive of the passages cannot be reached now: try again"),
    (RestoreFailedError, "the passages cannot be restored from their archive now: try again"),
    (UnavailableError, "the index is not available now: try again"),
    (NotWritableError, "the index takes no writes"),
    (IdentityError, "the index is not set up correctly"),
)
"""Messages for tenants; the first match counts.

Others could tell how much other tenants ask or write. That a shard is archived, a tenant can tell
from the time of its first answer, too.
"""


class TenantScope:
    """The tenant of one request, and the conversion of what its caller sends and gets."""

    def __init__(self, tenant: str, secret: str, limits: TenantLimits = NO_LIMITS) -> None:
        """`secret` makes positions opaque; see `PositionCipher`."""
        self.tenant = tenant
        """Name of the tenant; empty if the index has no tenants. Then nothing is converted."""
        self.limits = limits
        """The limits of the tenant for this request."""
        self._cipher = PositionCipher(secret, tenant)

    def open(self, after: tuple[Position, ...]) -> tuple[Position, ...]:
        """Converts the positions of a request; raises InvalidRequestError for unknown ones."""
        return self._cipher.open_all(after) if self.tenant else after

    def seal(self, position: Position) -> Position:
        """Converts a position of a reply."""
        return self._cipher.seal(position) if self.tenant else position

    def visible(self, coverage: Coverage) -> Coverage:
        """Returns the coverage without sequence numbers and details of shards."""
        if not self.tenant:
            return coverage
        return Coverage(tuple(map(_visible_part, coverage.shards)))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Rewords errors of the context that could tell something about other tenants.

        Administrators see all errors unchanged.
        """
        try:
            yield
        except _OWN_ERRORS:
            raise
        except WinnowError as error:
            if not self.tenant or caller.shows_details():
                raise
            raise _reworded(error) from error


NO_TENANT = TenantScope("", "")
"""The scope of requests to an index without tenants."""


class Tenancy:
    """Whether an index has tenants, and which tenant a request is for."""

    def __init__(
        self, cluster: Callable[[], Cluster | None], quotas: TenantQuotas = UNLIMITED
    ) -> None:
        """`cluster` returns the served cluster; None before it was found."""
        self._cluster, self._quotas = cluster, quotas

    def scope_of(self, requested: str) -> TenantScope:
        """Returns the tenant of a request by the key of the current caller.

        `requested` is the tenant that the request names; it may be empty.

        Before the cluster was found, it is not known whether the index has tenants. Then requests
        of no tenant are left to the cores, which refuse all requests.

        Raises UnavailableError for a request of a tenant before the cluster was found, and the
        errors of `choose_tenant`.
        """
        cluster, rights = self._cluster(), _rights()
        if cluster is None:
            if requested or rights.own:
                raise UnavailableError("not every shard of the index has been found yet: try again")
            return NO_TENANT
        tenant = choose_tenant(requested, rights, has_tenants=cluster.has_tenants)
        if not tenant:
            return NO_TENANT
        # the rate of administrators, who also import and move passages, is not that of the tenant
        is_counted = bool(rights.own) or caller.current() is None
        limits = self._quotas.limits_of(tenant, counts_rates=is_counted)
        return TenantScope(tenant, cluster.index_id, limits)

    def check_administrator(self) -> None:
        """Checks that the current caller may act for all tenants of the index.

        Raises PermissionDeniedError for a key without the scope admin, and InvalidRequestError if
        the index has no tenants.
        """
        if not _rights().may_choose:
            raise PermissionDeniedError("the key lacks the scope admin")
        cluster = self._cluster()
        if cluster is not None and not cluster.has_tenants:
            raise invalid_field("index", "has no tenants")


def _rights() -> TenantRights:
    current = caller.current()
    if current is None:
        return TenantRights(may_choose=True)
    return TenantRights(own=current.tenant, may_choose=current.has_scope(_ADMIN))


def _visible_part(part: ShardCoverage) -> ShardCoverage:
    reason = "" if part.status is ShardStatus.SEARCHED else part.status.value.replace("_", " ")
    return replace(part, sequence=None, reason=reason, detail="")


def _reworded(error: WinnowError) -> WinnowError:
    if isinstance(error, OverloadedError):
        return OverloadedError(caller.BUSY, error.retry_after)
    for kind, message in _MESSAGES:
        if isinstance(error, kind):
            return kind(message)
    return WinnowError("the request failed")
