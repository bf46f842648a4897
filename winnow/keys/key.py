"""A key: the name of its owner, its scopes and its rate limit. Pure."""

import re
from dataclasses import dataclass
from enum import Enum

from winnow.policy.rates import Rate
from winnow.quoting import quoted


class Scope(str, Enum):
    """What a caller may do."""

    ASK = "ask"
    """Ask questions."""
    PREDICT = "predict"
    """Apply heads to texts, and list heads."""
    FEED = "feed"
    """Put passages into the index, and take them out."""
    ADMIN = "admin"
    """See the cluster: its nodes, and what they have in hand."""


LONGEST_NAME = 64
_NAME = re.compile(rf"[A-Za-z0-9._:@-]{{1,{LONGEST_NAME}}}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ID_DIGITS = 12
MOST_PER_SECOND = 1e6
_LEAST_PER_SECOND = 1e-6
"""Once in twelve days: the seconds to wait must be a number that an error can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key: its owner, the digest of its token, its scopes and its rate."""

    name: str
    """Name of the owner: the client by which the load is shared fairly."""
    digest: str
    """Digest of the token (`winnow.keys.token`)."""
    scopes: frozenset[Scope]
    rate: Rate | None = None
    """None for no limit."""
    created: str = ""
    """The day of its creation, in ISO 8601."""

    def __post_init__(self) -> None:
        """Raises ValueError if a value is invalid."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"name {quoted(self.name)} is not 1 to {LONGEST_NAME} letters, digits or ._:@-"
            )
        if not _DIGEST.fullmatch(self.digest):
            raise ValueError(f"the sha256 of {self.name} is not 64 hexadecimal digits")
        if not self.scopes:
            raise ValueError(f"key {self.name} has no scope")
        if self.rate is not None:
            _check(f"rate of {self.name}", self.rate.per_second, _LEAST_PER_SECOND)
            _check(f"burst of {self.name}", self.rate.burst, 1)

    @property
    def id(self) -> str:
        """The id of the key: the first digits of the digest, which do not disclose the token."""
        return id_of(self.digest)


def _check(what: str, value: float, least: float) -> None:
    if not least <= value <= MOST_PER_SECOND:
        raise ValueError(f"{what} is {value:g}, and not {least:g} to {MOST_PER_SECOND:g}")


def id_of(digest: str) -> str:
    """The id of the key whose token has this digest."""
    return digest[:_ID_DIGITS]
