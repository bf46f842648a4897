"""The gate: lets callers in by their keys, and ends streams whose key is revoked.

One gate stands before all ports of a front node, so that a rate limit counts over all of them.
"""

import hmac
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial

from winnow import caller
from winnow.caller import Caller, Lease
from winnow.deadline import Clock
from winnow.errors import OverloadedError, PermissionDeniedError, UnauthenticatedError, WinnowError
from winnow.keys.key import Key, Scope, id_of
from winnow.keys.token import digest_of, of_headers
from winnow.policy.rates import Rates

_NOBODYS = "0" * 64


class RefusalReason(str, Enum):
    """Why a call is refused."""

    UNAUTHENTICATED = "unauthenticated"
    PERMISSION_DENIED = "permission_denied"
    RATE = "rate"


Refused = Callable[[Scope, RefusalReason], None]
"""Called for every refused call, with the scope that it needs and the reason."""


def nobody(_scope: Scope, _reason: RefusalReason) -> None:
    """Ignores refused calls."""


class Gate:
    """The keys that are good now."""

    def __init__(
        self, keys: Iterable[Key], clock: Clock = time.monotonic, refused: Refused = nobody
    ) -> None:
        self._rates, self._refused = Rates(clock), refused
        self._keys: dict[str, Key] = {}
        self._held: dict[Lease, tuple[Key, Scope]] = {}
        self.update(keys)

    def update(self, keys: Iterable[Key]) -> None:
        """Replaces the keys, and ends the leases of keys that are no longer good."""
        self._keys = {key.id: key for key in keys}
        self._rates.keep(self._keys.keys())
        for lease, (key, scope) in tuple(self._held.items()):
            if (why := self._fault(key, scope)) is not None:
                lease.end(why)

    def enter(self, scope: Scope, token: str, calls: int = 1, begun: int = 0) -> Key:
        """The key of a caller, whose calls are counted. `begun` calls were counted before.

        Raises UnauthenticatedError if there is no token, or an unknown one. Raises
        PermissionDeniedError if the key lacks the scope. Raises OverloadedError, with the time to
        wait, if the rate of the key is exceeded.
        """
        key = self._known(token)
        if key is None:
            self._refused(scope, RefusalReason.UNAUTHENTICATED)
            raise UnauthenticatedError(
                "the key that was sent is not known here"
                if token
                else "no key was sent: send `authorization: Bearer TOKEN`"
            )
        if (fault := self._fault(key, scope)) is not None:
            self._refused(scope, RefusalReason.PERMISSION_DENIED)
            raise fault
        if wait := self._take(key.id, calls, begun):
            assert key.rate is not None
            self._refused(scope, RefusalReason.RATE)
            raise OverloadedError(
                f"key {key.name} may be used {key.rate.per_second:g} times a second; try again in "
                f"{wait:.2f} s",
                wait,
            )
        return key

    def may(self, key: Key, scope: Scope) -> bool:
        """Whether an admitted key has another scope, too."""
        return self._fault(key, scope) is None

    def expect(self, key: Key, scope: Scope) -> None:
        """Raises the error of `enter` if an admitted key lacks another scope."""
        if (fault := self._fault(key, scope)) is not None:
            self._refused(scope, RefusalReason.PERMISSION_DENIED)
            raise fault

    @contextmanager
    def held(self, key: Key, scope: Scope) -> Iterator[Lease]:
        """A lease of a stream, whose messages count as calls."""
        lease = Lease(partial(self._take, key.id))
        self._held[lease] = (key, scope)
        try:
            yield lease
        finally:
            del self._held[lease]

    def _known(self, token: str) -> Key | None:
        digest = digest_of(token)
        key = self._keys.get(id_of(digest))
        # the time of the comparison says nothing about the known digests
        same = hmac.compare_digest(key.digest if key else _NOBODYS, digest)
        return key if same and token else None

    def _fault(self, key: Key, scope: Scope) -> WinnowError | None:
        """Why a known key may not do something, by the present keys."""
        now = self._keys.get(key.id)
        if now is None or now.digest != key.digest:
            return UnauthenticatedError(f"key {key.name} was taken back")
        if scope not in now.scopes:
            return PermissionDeniedError(
                f"key {key.name} has no scope {scope.value!r}, which this needs"
            )
        return None

    def _take(self, key_id: str, calls: int = 1, begun: int = 0) -> float:
        """The seconds until a key may be used; at 0 the use is counted."""
        key = self._keys.get(key_id)
        return self._rates.take(key_id, key.rate, calls, begun) if key and key.rate else 0.0


def identified(gate: Gate, key: Key, scope: Scope) -> Caller:
    """The caller whose key was admitted for a scope."""
    return Caller(
        key.name,
        partial(gate.held, key, scope),
        lambda also: gate.may(key, Scope(also)),
        lambda also: gate.expect(key, Scope(also)),
    )


HeaderGate = Callable[..., str]
"""`gate(scope, headers, calls=1, begun=0)`: the client's key, by which the load is shared fairly.

Raises as `Gate.enter` does. Headers are pairs, with names in lower case. The request counts as
`calls` calls, beside the `begun` ones that were counted before.
"""


def header_gate(gate: Gate) -> HeaderGate:
    """A gate for an HTTP server, which binds the caller to the request."""

    def enter(
        scope: str, headers: Iterable[tuple[str, str]], calls: int = 1, begun: int = 0
    ) -> str:
        key = gate.enter(Scope(scope), of_headers(headers), calls, begun)
        caller.bind(identified(gate, key, Scope(scope)))
        return key.name

    return enter
