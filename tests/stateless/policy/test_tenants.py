"""Which tenant a request is for, by its key and by what it names."""

import pytest

from winnow.errors import InvalidRequestError, PermissionDeniedError, WinnowError
from winnow.stateless.policy.tenants import TenantRights, choose_tenant

OWN, ADMIN, NONE = TenantRights(own="acme"), TenantRights(may_choose=True), TenantRights()


@pytest.mark.parametrize(
    ("requested", "rights", "has_tenants", "chosen"),
    [
        ("", OWN, True, "acme"),
        ("acme", OWN, True, "acme"),
        ("other", ADMIN, True, "other"),
        ("", NONE, False, ""),
        ("", ADMIN, False, ""),
    ],
)
def test_a_key_decides_the_tenant_and_only_an_administrator_chooses_one(
    requested: str, rights: TenantRights, has_tenants: bool, chosen: str
) -> None:
    assert choose_tenant(requested, rights, has_tenants=has_tenants) == chosen


@pytest.mark.parametrize(
    ("requested", "rights", "has_tenants", "kind", "message"),
    [
        ("other", OWN, True, PermissionDeniedError, "of another tenant"),
        ("other", OWN, False, PermissionDeniedError, "of another tenant"),
        ("", OWN, False, PermissionDeniedError, "the index has no tenants"),
        ("acme", NONE, True, PermissionDeniedError, "the key is of no tenant"),
        ("", NONE, True, PermissionDeniedError, "the key is of no tenant"),
        ("", ADMIN, True, InvalidRequestError, "is missing"),
        ("a b", ADMIN, True, InvalidRequestError, "letters, digits"),
        ("acme", NONE, False, InvalidRequestError, "has no tenants"),
    ],
)
def test_other_requests_are_refused(
    requested: str, rights: TenantRights, has_tenants: bool, kind: type[WinnowError], message: str
) -> None:
    """No error names the tenant of another key."""
    with pytest.raises(kind, match=message) as raised:
        choose_tenant(requested, rights, has_tenants=has_tenants)
    assert "acme" not in str(raised.value)
