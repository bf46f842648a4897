"""The client key of a call: nodes share their capacity fairly among client keys.

For an authenticated caller, the client key is the tenant of its API key, or the name of a key of no
tenant. Otherwise it is the value of a header, which is not verified; a proxy that authenticates
callers may set the header. Front nodes pass the client key on to content nodes.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from winnow import caller

KEY = "x-winnow-client"
_MAX_LENGTH = 64
_ALLOWED = re.compile(rf"[A-Za-z0-9._:@-]{{1,{_MAX_LENGTH}}}")


def of_metadata(metadata: Iterable[tuple[str, Any]] | None) -> str:
    """Returns the client key of a call; without a valid one, the empty key, which all share."""
    authenticated = caller.current()
    if authenticated is not None:
        return authenticated.client
    sent = next((value for key, value in metadata or () if key == KEY), "")
    return sent if isinstance(sent, str) and _ALLOWED.fullmatch(sent) else ""


def client_of(context: Any) -> str:
    """Returns the client key of the call with this gRPC context; as `of_metadata`."""
    return of_metadata(context.invocation_metadata())


def outgoing_metadata(client: str) -> tuple[tuple[str, str], ...]:
    """Builds the metadata that passes the client key on to another node.

    A key that is too long is replaced by its checksum, because the next server would ignore it. A
    suffix for the kind of work, which this node appends, may make the key too long.
    """
    if len(client) > _MAX_LENGTH:
        client = hashlib.sha256(client.encode()).hexdigest()
    return ((KEY, client),) if client else ()
