"""Tenants of an index, and how the stored id of a passage names its tenant. Pure.

In an index with tenants every passage is of one tenant. Its stored id is the name of the tenant, a
control character and the id that callers use. Ids of callers have no control characters, so each
stored id tells its tenant, and two tenants may use the same id.
"""

from collections.abc import Sequence

MAX_TENANT = 64
"""Limit of characters of the name of a tenant."""
_OTHER_CHARACTERS = frozenset("._:@-")
"""Characters of names besides letters and digits of ASCII."""
_SEPARATOR = "\x1f"
"""The unit separator of ASCII. No name of a tenant has it, so no prefix begins another."""
_WHOLE = "\x1e"
"""The record separator of ASCII, in place of the id of a caller."""
_AFTER_SEPARATOR = "\x20"
"""The next character. It precedes all characters of names, so ids are ordered by tenant."""


def tenant_problem(name: str) -> str:
    """Describes why a text is not the name of a tenant; empty if it is one."""
    is_plain = all(
        each.isascii() and (each.isalnum() or each in _OTHER_CHARACTERS) for each in name
    )
    if is_plain and 1 <= len(name) <= MAX_TENANT:
        return ""
    return f"{name[:MAX_TENANT]!r} is not 1 to {MAX_TENANT} letters, digits or ._:@-"


def stored_id(tenant: str, passage_id: str) -> str:
    """Returns the id under which a passage is stored.

    An empty `tenant` stands for an index without tenants, which stores the id of the caller.
    """
    return f"{prefix_of(tenant)}{passage_id}" if tenant else passage_id


def id_of_no_passage(tenant: str) -> str:
    """Returns a stored id of a tenant that no passage has: the ids of callers are not empty.

    Writes that change nothing are logged under this id.
    """
    return prefix_of(tenant)


def names_no_passage(stored: str) -> bool:
    """Whether a stored id is `id_of_no_passage` or `id_of_whole_tenant` of a tenant."""
    return bool(tenant_of(stored)) and own_id(stored) in ("", _WHOLE)


def own_id(stored: str) -> str:
    """Returns the id that callers use, without the tenant."""
    return stored.rpartition(_SEPARATOR)[2]


def tenant_of(stored: str) -> str:
    """Returns the tenant that a stored id names; empty if it names none."""
    return stored.rpartition(_SEPARATOR)[0]


def prefix_of(tenant: str) -> str:
    """Returns the beginning of all stored ids of a tenant, and of no other stored id."""
    return f"{tenant}{_SEPARATOR}"


def end_of_tenant(tenant: str) -> str:
    """Returns a text that follows all stored ids of a tenant, and precedes those of later ones.

    The order is that of UTF-8. No stored id equals it. For an empty name it precedes all ids.
    """
    return f"{tenant}{_AFTER_SEPARATOR}" if tenant else ""


def id_of_whole_tenant(tenant: str) -> str:
    """Returns a stored id of a tenant that no passage has: its deletion deletes all passages."""
    return f"{prefix_of(tenant)}{_WHOLE}"


def is_whole_tenant(stored: str) -> bool:
    """Whether a stored id is the `id_of_whole_tenant` of a tenant."""
    return bool(tenant_of(stored)) and own_id(stored) == _WHOLE


def ids_problem(identifiers: Sequence[str], has_tenants: bool) -> str:
    """Describes which stored id does not fit an index; empty if all fit.

    `has_tenants`: whether the index has tenants. Then each id must name one, and else none.
    """
    for each in identifiers:
        tenant = tenant_of(each)
        if has_tenants and (not tenant or tenant_problem(tenant)):
            return f"{each!r} names no tenant, but the index has tenants"
        if not has_tenants and _SEPARATOR in each:
            return f"{own_id(each)!r} is of a tenant, but the index has no tenants"
    return ""
