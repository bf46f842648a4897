"""Reads the documents of a folder as valid passages."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from winnow.documents.conversion.protocol import MAX_FILE_BYTES
from winnow.documents.document import Document
from winnow.documents.failures import ConversionError, ConversionFailure
from winnow.documents.folder import FolderFile, FolderListing, SkippedFile
from winnow.documents.passages import MAX_DOCUMENT_NAME, document_digest, document_passages
from winnow.domain.write import FedPassage, Put
from winnow.files.opened import sha256
from winnow.files.watched import FileStamp, stamp
from winnow.passages.canonical import canonical
from winnow.passages.validation import passage_violations

Convert = Callable[[Iterable[Path]], Iterator[tuple[Path, Document | ConversionFailure]]]
"""Converts files in the order given."""


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """The passages of a document; at least one."""

    name: str
    puts: tuple[Put, ...]
    notes: tuple[str, ...]
    """What the passages lack, such as `3 of 10 pages have no text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFolder:
    """The files of a folder with their digests, before they are converted."""

    files: tuple[FolderFile, ...]
    digests: Mapping[str, str]
    """`document_digest` of each file, by name."""
    skipped: tuple[SkippedFile, ...]
    base_url: str = ""
    """URL of the folder, with a final slash; empty if it has none."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the names and digests of all files, in hexadecimal."""
        lines = (f"{each.name}\t{self.digests[each.name]}\n" for each in self.files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def read(
        self, convert: Convert, names: Collection[str] | None = None
    ) -> Iterator[DocumentRows | SkippedFile]:
        """Converts files and cuts them into passages, in the order of their names.

        `names`: the documents to read; None for all.
        """
        chosen = {
            each.path: each.name for each in self.files if names is None or each.name in names
        }
        for path, document in convert(chosen):
            name = chosen[path]
            if isinstance(document, ConversionFailure):
                yield SkippedFile(name, _reason(document))
                continue
            digest = self.digests[name]
            if document.sha256:  # the file may have changed since its digest was computed
                digest = document_digest(document.sha256, self.base_url)
            passages = list(document_passages(name, document, digest, self.base_url))
            if reason := _problem(name, passages):
                yield SkippedFile(name, reason)
            else:
                yield DocumentRows(name, tuple(map(canonical, passages)), document.notes)


class FolderScanner:
    """Computes the digests of files, and remembers them until a file changes."""

    def __init__(self, base_url: str, max_bytes: int = MAX_FILE_BYTES) -> None:
        """`base_url`: URL of the folder; empty if it has none. Larger files are not read."""
        self._max_bytes = max_bytes
        self._base_url = f"{base_url.rstrip('/')}/" if base_url else ""
        self._known: dict[Path, tuple[FileStamp, str]] = {}

    def scan(self, listing: FolderListing, on_file: Callable[[], None]) -> ScannedFolder:
        """Computes the digests of all files. Calls `on_file` after each file."""
        digests: dict[str, str] = {}
        skipped = list(listing.skipped)
        for file in listing.files:
            try:
                self._check_size(file.path)
                digests[file.name] = document_digest(self._sha256(file.path), self._base_url)
            except ConversionError as error:
                skipped.append(SkippedFile(file.name, _reason(error.failure())))
            except OSError as error:
                skipped.append(SkippedFile(file.name, f"cannot be read: {error.strerror}"))
            on_file()
        return ScannedFolder(
            files=tuple(each for each in listing.files if each.name in digests),
            digests=digests,
            skipped=tuple(skipped),
            base_url=self._base_url,
        )

    def _check_size(self, path: Path) -> None:
        """Raises ConversionError for a file that no conversion would read."""
        size = path.stat().st_size
        if size > self._max_bytes:
            raise ConversionError.of_size(size, self._max_bytes)

    def _sha256(self, path: Path) -> str:
        before = stamp(path)
        if before is not None and (known := self._known.get(path)) and known[0] == before:
            return known[1]
        digest = sha256(path)
        if before is not None:
            self._known[path] = (before, digest)
        return digest


def _reason(failure: ConversionFailure) -> str:
    return f"{failure.reason.value}: {failure.detail}"


def _problem(name: str, passages: list[FedPassage]) -> str:
    """Returns why a document cannot be indexed; empty if it can."""
    if len(name) > MAX_DOCUMENT_NAME:
        return f"has a path of {len(name)} characters, at most {MAX_DOCUMENT_NAME} are allowed"
    if not passages:
        return "has no text"
    for passage in passages:
        for violation in passage_violations(passage):
            return f"{violation.field} {violation.description}"
    return ""
