"""The client key of a call: nodes share their capacity fairly among client keys.

If callers authenticate, it is the name of their key. Otherwise it is the value of a header, which
is not checked: a proxy that authenticates callers may set it. Front nodes pass it on to content
nodes, which share their readers by it.
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
    """The client key of a call; empty if it has no valid one. All such callers share one key."""
    authenticated = caller.current()
    if authenticated is not None:
        return authenticated.name
    sent = next((value for key, value in metadata or () if key == KEY), "")
    return sent if isinstance(sent, str) and _ALLOWED.fullmatch(sent) else ""


def outgoing_metadata(client: str) -> tuple[tuple[str, str], ...]:
    """Metadata that passes the client key on to another node.

    This node may have lengthened the key, by a suffix for the kind of work. A key that is too long
    is replaced by its checksum, or the next server would ignore it.
    """
    if len(client) > _MAX_LENGTH:
        client = hashlib.sha256(client.encode()).hexdigest()
    return ((KEY, client),) if client else ()
