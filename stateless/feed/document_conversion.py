"""Converts uploaded documents to passages, in a worker process. Stores nothing.

Clients store the passages with the calls that every feeder uses.
"""

import hashlib
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.conversion.protocol import ConversionLimits
from winnow.documents.failures import ConversionFailure
from winnow.documents.passages import (
    MAX_DOCUMENT_NAME,
    UPLOADED,
    document_digest,
    document_passages,
)
from winnow.domain.write import FedPassage
from winnow.errors import OverloadedError, invalid_field
from winnow.inference.fair_threads import FairThreads

MAX_FILE_BYTES = 10_000_000
"""Maximum size of an uploaded file."""
UPLOAD_LIMITS = ConversionLimits(
    seconds=30,
    memory_bytes=1_000_000_000,
    file_bytes=MAX_FILE_BYTES,
    characters=2_000_000,
    passages=10_000,
)
"""Limits of the conversion of an uploaded file."""
_MAX_WAITING = 4
"""Maximum number of files that are being converted or wait for it."""
_RETRY_SECONDS = 2.0
_MAX_SUFFIX = 16


@dataclass(frozen=True, slots=True)
class ConvertedDocument:
    """The passages of an uploaded document."""

    passages: tuple[FedPassage, ...]
    notes: tuple[str, ...]
    """What the passages lack, such as `3 of 10 pages have no text`."""
    digest: str
    """The `document_hash` of all passages."""


class DocumentConversion:
    """Converts uploaded documents, one after the other, with fair turns for clients."""

    def __init__(self, converter: DocumentConverter) -> None:
        """`converter` needs one worker. The conversion does not close it."""
        self._converter = converter
        self._thread = FairThreads(1, "documents")
        self._waiting = 0

    async def convert(self, name: str, content: bytes, client: str = "") -> ConvertedDocument:
        """Converts the content of a file, and cuts it into passages.

        Raises:
            InvalidRequestError: the name is invalid, or the content cannot be converted.
            OverloadedError: too many files wait for their conversion.

        """
        _check_document(name, content)
        if self._waiting >= _MAX_WAITING:
            message = f"{self._waiting} documents are being converted; send this one again"
            raise OverloadedError(message, _RETRY_SECONDS)
        self._waiting += 1
        try:
            return await self._thread.run(client, partial(self._convert, name, content))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Ends the thread. Close the converter first: it ends a conversion that is running."""
        self._thread.close()

    def _convert(self, name: str, content: bytes) -> ConvertedDocument:
        with tempfile.TemporaryDirectory(prefix="winnow-") as directory:
            path = Path(directory, f"document{PurePosixPath(name).suffix[:_MAX_SUFFIX]}")
            path.write_bytes(content)
            ((_, converted),) = self._converter.convert([path])
        if isinstance(converted, ConversionFailure):
            problem = f"{converted.reason.value}: {converted.detail}"
            raise invalid_field("content", problem)
        digest = UPLOADED + document_digest(hashlib.sha256(content).hexdigest(), "")
        passages = tuple(document_passages(name, converted, digest))
        if not passages:
            raise invalid_field("content", "has no words")
        return ConvertedDocument(passages, converted.notes, digest)


def _check_document(name: str, content: bytes) -> None:
    """Raises InvalidRequestError for an invalid name or a content that is too large."""
    if not name.strip() or len(name) > MAX_DOCUMENT_NAME:
        problem = f"has {len(name)} characters, 1 to {MAX_DOCUMENT_NAME} are allowed"
        raise invalid_field("name", problem)
    if not name.isprintable():
        raise invalid_field("name", "has control characters")
    if len(content) > MAX_FILE_BYTES:
        problem = f"has {len(content):,} bytes, at most {MAX_FILE_BYTES:,} are allowed"
        raise invalid_field("content", problem)
