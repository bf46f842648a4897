"""Returns passages and documents as text, for the tool `fetch` and for resources."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.client import Passage
from winnow.client.aio import AsyncClientApi
from winnow.domain.listing import DOCUMENT
from winnow.domain.source import source_of
from winnow.errors import InvalidRequestError, NotFoundError
from winnow.filtering.writing import format_value
from winnow.mcp.document_text import join_passages
from winnow.mcp.uris import ResourceKind, ResourceName, resource_of_uri
from winnow.mcp.values import FetchToolResult
from winnow.quoting import quoted

PART_CHARACTERS = 40_000
"""Maximum length of a part of a document, in characters: some 10,000 tokens of a language model."""
_MAX_PASSAGES = 5_000
"""Maximum number of passages of a document that is joined."""


@dataclass(frozen=True, slots=True)
class TextSource:
    """Looks up passages and documents of an index."""

    api: AsyncClientApi
    timeout: float
    """Seconds until a call is given up."""

    async def fetch(self, wanted: str) -> FetchToolResult:
        """Returns a text by the id of a passage, by a URI, or by the name of a document.

        Raises NotFoundError if the index has neither.
        """
        resource = resource_of_uri(wanted)
        if resource is not None:
            return await self.read(resource)
        try:
            return await self.read(ResourceName(ResourceKind.PASSAGE, wanted))
        except NotFoundError:
            return await self.read(ResourceName(ResourceKind.DOCUMENT, wanted))

    async def read(self, resource: ResourceName) -> FetchToolResult:
        """Returns the text of a resource. Raises NotFoundError if the index lacks it."""
        if resource.kind is ResourceKind.PASSAGE:
            return await self._passage(resource)
        return await self._document(resource)

    async def _passage(self, resource: ResourceName) -> FetchToolResult:
        found = await self.api.get_passages(resource.name, timeout=self.timeout)
        if resource.name not in found:
            raise _not_found(resource)
        passage = found[resource.name]
        source = source_of(passage.metadata)
        document = None if source is None else ResourceName(ResourceKind.DOCUMENT, source.document)
        return FetchToolResult(
            id=passage.id,
            title=passage.title,
            text=passage.text,
            url=url_of(passage),
            metadata=dict(passage.metadata),
            document=None if document is None else document.uri,
        )

    async def _document(self, resource: ResourceName) -> FetchToolResult:
        try:
            passages = await self._passages(resource.name)
        except InvalidRequestError:  # no passage has a document, or the name is too long
            passages = ()
        if not passages:
            raise _not_found(resource)
        text, start = join_passages(passages), resource.start
        if start and start >= len(text):
            raise NotFoundError(
                f"the document has only {len(text)} characters: it has no part from {start} on"
            )
        end = start + PART_CHARACTERS
        first = ResourceName(resource.kind, resource.name)
        source = source_of(passages[0].metadata)
        return FetchToolResult(
            id=resource.uri,
            title=resource.name,
            text=text[start:end],
            url=(source.url.partition("#")[0] if source else "") or first.uri,
            metadata={
                "document": resource.name,
                "passages": len(passages),
                "characters": len(text),
                "start": start,
            },
            document=first.uri,
            next=ResourceName(resource.kind, resource.name, end).uri if end < len(text) else None,
        )

    async def _passages(self, document: str) -> Sequence[Passage]:
        """Returns the passages of a document."""
        passages: list[Passage] = []
        listing = self.api.list_passages(
            where=f"{DOCUMENT} = {format_value(document)}", timeout=self.timeout
        )
        async for each in listing:
            passages.append(each)
            if len(passages) > _MAX_PASSAGES:
                raise NotFoundError(
                    f"{quoted(document)} has more than {_MAX_PASSAGES} passages: search in it, and "
                    "fetch single passages"
                )
        return passages


def url_of(passage: Passage) -> str:
    """Returns the web address of the passage's document; without one, the passage's URI."""
    source = source_of(passage.metadata)
    own = ResourceName(ResourceKind.PASSAGE, passage.id)
    return (source.url if source else "") or own.uri


def citation_of(passage: Passage) -> str:
    """Returns document, page and heading of a passage; without a document, its title."""
    source = source_of(passage.metadata)
    return source.citation if source else passage.title


def _not_found(resource: ResourceName) -> NotFoundError:
    kind = "document" if resource.kind is ResourceKind.DOCUMENT else "passage"
    return NotFoundError(
        f"the index has no {kind} {quoted(resource.name)}: use an id that search has returned"
    )
