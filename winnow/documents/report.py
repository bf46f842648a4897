"""What became of the files of a folder: counts, and the files that failed by name."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from winnow.documents.conversion.protocol import Converted
from winnow.documents.document import Document
from winnow.documents.failures import FailureReason
from winnow.quoting import many


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFile:
    """A file that has no document."""

    path: str
    reason: FailureReason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncompleteFile:
    """A file whose document lacks something."""

    path: str
    note: str
    """What it lacks, such as `3 of 10 pages have no text`."""


@dataclass(slots=True)
class ConversionReport:
    """Counts of converted files, and the files that failed by name."""

    formats: Counter[str] = field(default_factory=Counter)
    """Number of documents by format."""
    failed: list[FailedFile] = field(default_factory=list)
    incomplete: list[IncompleteFile] = field(default_factory=list)

    def add(self, path: str, converted: Converted) -> None:
        """Counts a file; `path` is shown, so it is relative to the folder."""
        if not isinstance(converted, Document):
            reason, detail = converted.reason, converted.detail
            self.failed.append(FailedFile(path=path, reason=reason, detail=detail))
            return
        self.formats[converted.format] += 1
        self.incomplete += (IncompleteFile(path=path, note=note) for note in converted.notes)

    def lines(self) -> Iterator[str]:
        """Yields the report as lines of text."""
        counts = ", ".join(f"{count:,} {name}" for name, count in self.formats.most_common())
        yield many(self.formats.total(), "document") + (f": {counts}" if counts else "")
        if self.failed:
            yield f"{many(len(self.failed), 'file')} failed:"
            for file in self.failed:
                yield f"  {_printable(file.path)}: {file.reason.value}: {file.detail}"
        if self.incomplete:
            yield f"{many(len({each.path for each in self.incomplete}), 'document')} incomplete:"
            yield from (f"  {_printable(each.path)}: {each.note}" for each in self.incomplete)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as values of JSON."""
        return {
            "documents": self.formats.total(),
            "formats": dict(self.formats.most_common()),
            "failed": [
                {"path": each.path, "reason": each.reason.value, "detail": each.detail}
                for each in self.failed
            ],
            "incomplete": [{"path": each.path, "note": each.note} for each in self.incomplete],
        }


def _printable(path: str) -> str:
    """Returns a path without characters that could forge lines or control a terminal."""
    return "".join(each if each.isprintable() else "?" for each in path)
