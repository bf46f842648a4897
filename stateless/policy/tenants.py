"""Decides which tenant a request is for. Pure."""

from dataclasses import dataclass

from winnow.domain.tenant import tenant_problem
from winnow.errors import PermissionDeniedError, invalid_field


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRights:
    """What the key of a caller says about tenants."""

    own: str = ""
    """Tenant of the key; empty for a key of no tenant."""
    may_choose: bool = False
    """Whether the caller may name any tenant: it is an administrator, or there are no keys."""


def choose_tenant(requested: str, rights: TenantRights, *, has_tenants: bool) -> str:
    """Returns the tenant of a request; empty if the index has no tenants.

    `requested` is the tenant that the request names; it may be empty.

    Raises:
        PermissionDeniedError: the key is of another tenant or of none, or it is of a tenant and the
            index has no tenants.
        InvalidRequestError: the request must name a tenant, or must not.

    """
    if rights.own and requested not in ("", rights.own):
        raise PermissionDeniedError("the key is of another tenant: name that one, or none")
    if not has_tenants:
        if rights.own:
            raise PermissionDeniedError(
                "the key is of a tenant, but the index has no tenants: use a key of no tenant"
            )
        if requested:
            raise invalid_field("tenant", "the index has no tenants: leave the field out")
        return ""
    if rights.own:
        return rights.own
    if not rights.may_choose:
        raise PermissionDeniedError(
            "the key is of no tenant, but the index has tenants: use a key that was made with "
            "--tenant, or one with the scope admin"
        )
    if not requested:
        raise invalid_field("tenant", "is missing: the index has tenants, so name one")
    if problem := tenant_problem(requested):
        raise invalid_field("tenant", problem)
    return requested
