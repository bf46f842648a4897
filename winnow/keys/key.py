"""A key: the name of its owner, its scopes and its rate limit. Pure."""

import re
from dataclasses import dataclass
from enum import Enum

from winnow.domain.tenant import tenant_problem
from winnow.policy.rates import Rate
from winnow.quoting import quoted


class Scope(str, Enum):
    """A permission of a key."""

    ASK = "ask"
    """Ask questions."""
    PREDICT = "predict"
    """Apply heads to texts, and list heads."""
    READ = "read"
    """Read, rerank and highlight texts that the caller sends."""
    FEED = "feed"
    """Put passages into the index, and delete them."""
    ADMIN = "admin"
    """See the state of the cluster, its nodes and their running calls."""


_MAX_NAME_LENGTH = 64
_NAME = re.compile(rf"[A-Za-z0-9._:@-]{{1,{_MAX_NAME_LENGTH}}}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ID_DIGITS = 12
_MAX_PER_SECOND = 1e6
_MIN_PER_SECOND = 1e-6
"""One call in twelve days. With a lower rate, the wait would not fit into an error's field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key: its owner, the digest of its token, its scopes and its rate."""

    name: str
    """Name of the owner. Front nodes share their capacity fairly among names."""
    digest: str
    """Digest of the token; see `winnow.keys.token`."""
    scopes: frozenset[Scope]
    rate: Rate | None = None
    """Rate limit of calls with this key; None for no limit."""
    created: str = ""
    """Date of creation, in ISO 8601."""
    tenant: str = ""
    """Tenant of all calls with this key; empty for a key of no tenant."""

    def __post_init__(self) -> None:
        """Raises ValueError if a value is invalid."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"name {quoted(self.name)} is not 1 to {_MAX_NAME_LENGTH} letters, digits or ._:@-"
            )
        if not _DIGEST.fullmatch(self.digest):
            raise ValueError(f"the sha256 of {self.name} is not 64 hexadecimal digits")
        if not self.scopes:
            raise ValueError(f"key {self.name} has no scope")
        if self.tenant and (problem := tenant_problem(self.tenant)):
            raise ValueError(f"tenant {problem}")
        if self.tenant and Scope.ADMIN in self.scopes:
            raise ValueError(
                f"key {self.name} is of a tenant, so it cannot have the scope admin, which shows "
                "all tenants"
            )
        if self.rate is not None:
            _check_limit(f"rate of {self.name}", self.rate.per_second, _MIN_PER_SECOND)
            _check_limit(f"burst of {self.name}", self.rate.burst, 1)

    @property
    def id(self) -> str:
        """The id of the key: the first digits of the digest. It does not disclose the token."""
        return key_id(self.digest)


def _check_limit(name: str, value: float, minimum: float) -> None:
    if not minimum <= value <= _MAX_PER_SECOND:
        raise ValueError(f"{name} is {value:g}, but must be {minimum:g} to {_MAX_PER_SECOND:g}")


def key_id(digest: str) -> str:
    """The id of the key whose token has this digest."""
    return digest[:_ID_DIGITS]
