"""Enforces tenants at a shard: each request sees the passages of its tenant, under their own ids.

The front has chosen the tenant by the key of the caller. A node does not trust the front to filter.
"""

from dataclasses import replace
from typing import Any

from winnow.domain.listing import (
    FoundPassages,
    PassageListing,
    PassageLookup,
    PassagePage,
    Seen,
    ShardRequest,
)
from winnow.domain.passage import Passage
from winnow.domain.tenant import own_id, stored_id, tenant_problem
from winnow.errors import PermissionDeniedError, invalid_field


def check_tenant(tenant: str, has_tenants: bool) -> None:
    """Checks that a request names a tenant if, and only if, the index has tenants.

    Raises:
        PermissionDeniedError: one of the two lacks tenants.
        InvalidRequestError: the name is invalid.

    """
    if has_tenants and not tenant:
        raise PermissionDeniedError("the index has tenants, and the request names none")
    if tenant and not has_tenants:
        raise PermissionDeniedError("the request names a tenant, and the index has no tenants")
    if tenant and (problem := tenant_problem(tenant)):
        raise invalid_field("tenant", problem)


def check_has_tenants(has_tenants: bool) -> None:
    """Raises InvalidRequestError unless the index has tenants."""
    if not has_tenants:
        raise invalid_field("index", "has no tenants")


def request_for_shard(request: ShardRequest[Seen]) -> ShardRequest[Seen]:
    """Returns the request of a tenant with the stored ids of its passages."""
    tenant, asked = request.tenant, _any(request)
    if isinstance(asked, PassageListing):
        # without an id, the page begins before the first passage of the tenant
        asked = replace(asked, after_id=stored_id(tenant, asked.after_id))
    elif isinstance(asked, PassageLookup):
        asked = replace(asked, ids=[stored_id(tenant, each) for each in asked.ids])
    changed: ShardRequest[Seen] = asked
    return changed


def result_for_tenant(result: Seen) -> Seen:
    """Returns the result of `request_for_shard` with the ids that callers use."""
    found = _any(result)
    if isinstance(found, (PassagePage, FoundPassages)):
        found = replace(found, passages=tuple(map(_with_own_id, found.passages)))
    own: Seen = found
    return own


def _with_own_id(passage: Passage) -> Passage:
    return replace(passage, id=own_id(passage.id))


def _any(value: object) -> Any:
    """Hides the type of a value, which mypy cannot narrow by the type of its result."""
    return value
