"""The index of a call to a content node. A node may hold shards of several indexes.

Calls without the header are for the default index of the node. Nodes of an older version ignore the
header, and serve a single index.
"""

from collections.abc import Iterable
from typing import Any

KEY = "x-winnow-index"


def of_metadata(metadata: Iterable[tuple[str, Any]] | None) -> str:
    """Returns the id of the index that a call names; empty for the default index."""
    sent = next((value for key, value in metadata or () if key == KEY), "")
    return sent if isinstance(sent, str) else ""


def outgoing_metadata(index_id: str) -> tuple[tuple[str, str], ...]:
    """Builds the metadata that names an index; empty for the default index."""
    return ((KEY, index_id),) if index_id else ()
