"""URIs of documents and passages, as resources for agents. Pure.

A document has the URI `winnow://documents/NAME`, a passage `winnow://passages/ID`. A document that
is longer than a reply has parts: `?start=N` begins at character N.
"""

import re
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote, unquote

_SCHEME = "winnow://"
_START = re.compile(r"start=(\d{1,9})", re.ASCII)


class ResourceKind(Enum):
    """What a URI names."""

    DOCUMENT = "documents"
    PASSAGE = "passages"

    @property
    def template(self) -> str:
        """The URI template of these resources (RFC 6570)."""
        return f"{_SCHEME}{self.value}/{{+name}}"


@dataclass(frozen=True, slots=True)
class ResourceName:
    """A resource that a URI names."""

    kind: ResourceKind
    name: str
    """Name of the document, or id of the passage."""
    start: int = 0
    """Offset of the first character to return; only of documents."""

    @property
    def uri(self) -> str:
        """The URI of the resource."""
        query = f"?start={self.start}" if self.start else ""
        return f"{_SCHEME}{self.kind.value}/{quote(self.name)}{query}"


def resource_of_uri(uri: str) -> ResourceName | None:
    """Returns the resource that a URI names; None if it is no URI of a document or passage."""
    for kind in ResourceKind:
        prefix = f"{_SCHEME}{kind.value}/"
        if not uri.startswith(prefix):
            continue
        path, _, query = uri.removeprefix(prefix).partition("?")
        start = _START.fullmatch(query)
        if path and (start or not query):
            return ResourceName(kind, unquote(path), int(start[1]) if start else 0)
    return None
