"""Sets the current caller by its key, without a call."""

import contextlib
from collections.abc import Iterator

from winnow import caller
from winnow.keys.gate import Gate, caller_of
from winnow.keys.key import Key, Scope
from winnow.keys.token import digest_of


@contextlib.contextmanager
def called_by(*scopes: Scope, tenant: str = "") -> Iterator[None]:
    """Sets a caller with a key for these scopes; without scopes, a caller without a key."""
    caller.forget()
    if scopes:
        key = Key(name="alice", digest=digest_of("token"), scopes=frozenset(scopes), tenant=tenant)
        caller.bind(caller_of(Gate([key]), key, scopes[0]))
    try:
        yield
    finally:
        caller.forget()
