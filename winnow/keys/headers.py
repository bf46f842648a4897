"""The gate as an HTTP server asks it: by the headers of a request."""

from collections.abc import Callable, Mapping

from winnow.keys.gate import Gate
from winnow.keys.scope import Scope
from winnow.keys.token import of_header

HeaderGate = Callable[..., str]
"""`gate(scope, headers, calls=1)`: the client's key, by which the load is shared fairly.

Raises UnauthenticatedError, PermissionDeniedError, OverloadedError. Names of headers are in lower
case, or the mapping does not tell cases apart. `calls`: how many the request counts for.
"""


def header_gate(gate: Gate) -> HeaderGate:
    """Asks for a key."""

    def enter(scope: str, headers: Mapping[str, str], calls: int = 1) -> str:
        return gate.enter(Scope(scope), of_header(headers.get("authorization", "")), calls).name

    return enter
