"""The file of an interrupted feed: it holds the line up to which everything is durable."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.files.durable import write_durably

_BEGINNING = 64 * 1024
"""Bytes at the beginning of a source that identify it. The source may grow."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source and the options of a feed: it can be resumed only with the same."""

    beginning: str
    """The checksum of its first bytes; empty for standard input."""
    bytes: int
    """Number of bytes that `beginning` is the checksum of."""
    cut: bool
    delete: bool

    @classmethod
    def of(cls, path: Path | None, cut: bool, delete: bool, most: int = _BEGINNING) -> "Source":
        """A file, or standard input for None; raises ArtefactError if it cannot be read."""
        if path is None:
            return cls("", 0, cut, delete)
        try:
            with path.open("rb") as file:
                start = file.read(most)
        except OSError as error:
            raise ArtefactError(f"cannot read {path}: {error.strerror or error}") from error
        return cls(sha256(start).hexdigest(), len(start), cut, delete)


class ResumeFile:
    """The file beside the source, or where --resume-file says."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, source: Path | None, cut: bool, delete: bool) -> int:
        """The line up to which everything is durable; 0 if nothing was noted.

        Raises:
            ArtefactError: it belongs to another source or other options, or cannot be read.

        """
        try:
            noted = json.loads(self.path.read_text(encoding="utf-8"))
            line, known = int(noted["line"]), Source(**noted["source"])
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ArtefactError(
                f"cannot resume from {self.path}: {error}; remove it to start again"
            ) from error
        if Source.of(source, cut, delete, known.bytes) != known:
            raise ArtefactError(
                f"{self.path} is of another source, or of other options: give the same to resume, "
                "or remove it to start again"
            )
        return line

    def note(self, line: int, source: Source) -> None:
        """Notes that everything up to a line is durable; raises OSError if it cannot be written."""
        content = {"line": line, "source": asdict(source)}
        write_durably(self.path, json.dumps(content).encode())

    def remove(self) -> None:
        """Removes the file: the feed is complete."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
