"""The gate as an HTTP server asks it: by the headers of a request. Binds the caller to it."""

from collections.abc import Callable, Iterable

from winnow import caller
from winnow.keys.gate import Gate
from winnow.keys.identified import identified
from winnow.keys.scope import Scope
from winnow.keys.token import of_headers

HeaderGate = Callable[..., str]
"""`gate(scope, headers, calls=1, begun=0)`: the client's key, by which the load is shared fairly.

Raises UnauthenticatedError, PermissionDeniedError, OverloadedError. Headers are pairs, with names
in lower case. `calls`: how many the request counts for, beside the `begun` ones that it was counted
for before.
"""


def header_gate(gate: Gate) -> HeaderGate:
    """Asks for a key."""

    def enter(
        scope: str, headers: Iterable[tuple[str, str]], calls: int = 1, begun: int = 0
    ) -> str:
        key = gate.enter(Scope(scope), of_headers(headers), calls, begun)
        caller.bind(identified(gate, key, Scope(scope)))
        return key.name

    return enter
