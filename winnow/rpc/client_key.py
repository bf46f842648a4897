"""The key of the client, which calls carry for sharing fairly.

Where callers are known by keys, it is the name of the key. Elsewhere it is not checked: behind a
proxy that knows its callers, the proxy sets it. Front nodes pass it on to content nodes, which
share their readers by it.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from winnow import caller

KEY = "x-winnow-client"
_LONGEST = 64
_ALLOWED = re.compile(rf"[A-Za-z0-9._:@-]{{1,{_LONGEST}}}")


def of_metadata(metadata: Iterable[tuple[str, Any]] | None) -> str:
    """The caller's key; empty, the key of all callers without one, if it sent no usable key."""
    known = caller.current()
    if known is not None:
        return known.name
    sent = next((value for key, value in metadata or () if key == KEY), "")
    return sent if isinstance(sent, str) and _ALLOWED.fullmatch(sent) else ""


def outgoing(client: str) -> tuple[tuple[str, str], ...]:
    """Metadata that passes the key on.

    A key that has grown too long here, by what it is a turn for, is replaced by its checksum: the
    next server would take it for a missing key.
    """
    if len(client) > _LONGEST:
        client = hashlib.sha256(client.encode()).hexdigest()
    return ((KEY, client),) if client else ()
