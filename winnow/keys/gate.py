"""The gate: admits calls by their keys, and ends streams when their key is revoked.

All ports of a front node share one gate, so that a key's rate limit covers all of them.
"""

import hmac
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial

from winnow import caller
from winnow.caller import Caller, Lease
from winnow.deadline import Clock
from winnow.errors import OverloadedError, PermissionDeniedError, UnauthenticatedError, WinnowError
from winnow.keys.key import Key, Scope, key_id
from winnow.keys.token import digest_of, token_of_headers
from winnow.policy.rates import TokenBuckets

_UNUSED_DIGEST = "0" * 64
"""A digest that belongs to no known token."""


class RefusalReason(str, Enum):
    """Why a call is refused."""

    UNAUTHENTICATED = "unauthenticated"
    PERMISSION_DENIED = "permission_denied"
    RATE = "rate"


OnRefusal = Callable[[Scope, RefusalReason], None]
"""Called for every refused call, with the scope that it requires and the reason."""


def ignore_refusal(_scope: Scope, _reason: RefusalReason) -> None:
    """Ignores a refused call; the default `OnRefusal`."""


class Gate:
    """The current keys, their rate limits, and the leases of running streams."""

    def __init__(
        self,
        keys: Iterable[Key],
        clock: Clock = time.monotonic,
        on_refusal: OnRefusal = ignore_refusal,
    ) -> None:
        self._rates, self._on_refusal = TokenBuckets(clock), on_refusal
        self._keys: dict[str, Key] = {}
        self._leases: dict[Lease, tuple[Key, Scope]] = {}
        self.update(keys)

    def update(self, keys: Iterable[Key]) -> None:
        """Replaces the keys, and ends the leases of revoked keys."""
        self._keys = {key.id: key for key in keys}
        self._rates.keep(self._keys.keys())
        for lease, (key, scope) in tuple(self._leases.items()):
            if (denial := self._denial(key, scope)) is not None:
                lease.end(denial)

    def admit(self, scope: Scope, token: str, calls: int = 1, begun: int = 0) -> Key:
        """Counts `calls` calls with a token; returns its key. `begun` calls are already counted.

        Raises UnauthenticatedError if the token is empty or unknown. Raises PermissionDeniedError
        if the key lacks the scope. Raises OverloadedError, with the seconds to wait, if the calls
        exceed the key's rate.
        """
        key = self._find_key(token)
        if key is None:
            self._on_refusal(scope, RefusalReason.UNAUTHENTICATED)
            raise UnauthenticatedError(
                "the key is unknown"
                if token
                else "no key was sent as `authorization: Bearer TOKEN`"
            )
        self.require(key, scope)
        if wait := self._count(key.id, calls, begun):
            assert key.rate is not None
            self._on_refusal(scope, RefusalReason.RATE)
            message = (
                f"key {key.name} exceeds its rate of {key.rate.per_second:g} calls per second; try "
                f"again in {wait:.2f} s"
            )
            raise OverloadedError(message, wait).with_public(message)
        return key

    def scope_of(self, token: str, scopes: Sequence[Scope]) -> Scope:
        """Returns the first of these scopes that the key of a token has; the first, if none."""
        key = self._find_key(token)
        owned = (each for each in scopes if key is not None and each in key.scopes)
        return next(owned, scopes[0])

    def allows(self, key: Key, scope: Scope) -> bool:
        """Whether a key is still valid and has a scope."""
        return self._denial(key, scope) is None

    def require(self, key: Key, scope: Scope) -> None:
        """Raises an error unless the key is valid and has the scope.

        Raises UnauthenticatedError if the key was revoked, PermissionDeniedError if it lacks the
        scope.
        """
        if (denial := self._denial(key, scope)) is not None:
            self._on_refusal(scope, RefusalReason.PERMISSION_DENIED)
            raise denial

    @contextmanager
    def lease(self, key: Key, scope: Scope) -> Iterator[Lease]:
        """Opens a lease for a stream. Each message of the stream counts as a call."""
        lease = Lease(partial(self._count, key.id))
        if (denial := self._denial(key, scope)) is not None:
            lease.end(denial)  # the key was changed since the call was admitted
        self._leases[lease] = (key, scope)
        try:
            yield lease
        finally:
            del self._leases[lease]

    def _find_key(self, token: str) -> Key | None:
        digest = digest_of(token)
        key = self._keys.get(key_id(digest))
        # compared in constant time, which discloses nothing about the stored digests
        same = hmac.compare_digest(key.digest if key else _UNUSED_DIGEST, digest)
        return key if same and token else None

    def _denial(self, key: Key, scope: Scope) -> WinnowError | None:
        """Returns the error for a key that was revoked or lacks the scope; None if neither."""
        current = self._keys.get(key.id)
        if current is None or current.digest != key.digest:
            return UnauthenticatedError(f"key {key.name} was revoked")
        if current.tenant != key.tenant:
            return UnauthenticatedError(f"key {key.name} is now of another tenant: connect again")
        if scope not in current.scopes:
            return PermissionDeniedError(
                f"key {key.name} lacks the scope {scope.value!r}, which this call needs"
            )
        return None

    def _count(self, key_id: str, calls: int = 1, begun: int = 0) -> float:
        """Counts calls of a key; returns 0, or the seconds to wait if the rate is exceeded."""
        key = self._keys.get(key_id)
        return self._rates.take(key_id, key.rate, calls, begun) if key and key.rate else 0.0


def caller_of(gate: Gate, key: Key, scope: Scope) -> Caller:
    """Returns the caller with this key, which was admitted for `scope`."""
    return Caller(
        key.name,
        partial(gate.lease, key, scope),
        lambda other: gate.allows(key, Scope(other)),
        lambda other: gate.require(key, Scope(other)),
        tenant=key.tenant,
    )


HeaderGate = Callable[..., str]
"""`gate(scope, headers, calls=1, begun=0, others=())` admits an HTTP request, and returns its
client key. The key of the request needs `scope`, or one of the `others`.

Client keys share the front node fairly. Headers are (name, value) pairs, with names in lower case.
The request counts as `calls` calls; `begun` calls are already counted. Raises the errors of
`Gate.admit`.
"""


def header_gate(gate: Gate) -> HeaderGate:
    """Adapts a gate to an HTTP server, and binds the caller to the request."""

    def admit(
        scope: str,
        headers: Iterable[tuple[str, str]],
        calls: int = 1,
        begun: int = 0,
        others: Iterable[str] = (),
    ) -> str:
        token = token_of_headers(headers)
        admitted = gate.scope_of(token, [Scope(each) for each in (scope, *others)])
        key = gate.admit(admitted, token, calls, begun)
        admitted_caller = caller_of(gate, key, admitted)
        caller.bind(admitted_caller)
        return admitted_caller.client

    return admit
