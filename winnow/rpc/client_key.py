"""Who asks, as far as sharing fairly needs to know it: a key that the caller sends along.

Where callers are known by keys, it is the name of their key, whatever they send. Elsewhere nobody
checks it: behind a proxy that knows its callers, the proxy sets it. Fronts hand it on to content
nodes, which share their readers by it.
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
    """The caller's key; empty, the key of all who have none, if it sent none that is usable."""
    known = caller.current()
    if known is not None:
        return known.name
    sent = next((value for key, value in metadata or () if key == KEY), "")
    return sent if isinstance(sent, str) and _ALLOWED.fullmatch(sent) else ""


def outgoing(client: str) -> tuple[tuple[str, str], ...]:
    """Metadata that hands the key on.

    One that has grown too long here, by what it is a turn for, travels as its checksum: the next
    server would take it for the key of all who have none.
    """
    if len(client) > _LONGEST:
        client = hashlib.sha256(client.encode()).hexdigest()
    return ((KEY, client),) if client else ()
