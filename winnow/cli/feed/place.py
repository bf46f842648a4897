"""Where an interrupted feed goes on: a small file that says up to which line all is durable."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.files.durable import write_durably

_BEGINNING = 64 * 1024
"""Bytes of a source that it is known by. It may have grown since."""


@dataclass(frozen=True, slots=True)
class Source:
    """What is fed, and how: a feed goes on only with the same."""

    beginning: str
    """Checksum of its first bytes; empty for standard input."""
    bytes: int
    """That were summed."""
    cut: bool
    delete: bool

    @classmethod
    def of(cls, path: Path | None, cut: bool, delete: bool, most: int = _BEGINNING) -> "Source":
        """A file, or standard input if None; raises ArtefactError if it cannot be read."""
        if path is None:
            return cls("", 0, cut, delete)
        try:
            with path.open("rb") as file:
                start = file.read(most)
        except OSError as error:
            raise ArtefactError(f"cannot read {path}: {error.strerror or error}") from error
        return cls(sha256(start).hexdigest(), len(start), cut, delete)


class FeedFile:
    """The file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, source: Path | None, cut: bool, delete: bool) -> int:
        """The line up to which everything is durable; 0 if nothing was noted.

        Raises:
            ArtefactError: it was noted for something else, or it cannot be read.

        """
        try:
            noted = json.loads(self.path.read_text(encoding="utf-8"))
            line, known = int(noted["line"]), Source(**noted["source"])
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ArtefactError(
                f"cannot go on by {self.path}: {error}; remove it to begin anew"
            ) from error
        if Source.of(source, cut, delete, known.bytes) != known:
            raise ArtefactError(
                f"{self.path} is of another source, or of other options: give the same to go on, "
                "or remove it to begin anew"
            )
        return line

    def note(self, line: int, source: Source) -> None:
        """Notes durably that everything up to a line is; raises OSError if it cannot be written."""
        content = {"line": line, "source": asdict(source)}
        write_durably(self.path, json.dumps(content).encode())

    def remove(self) -> None:
        """There is nothing to go on with."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
