"""The resume file of a feed, which stores the line up to which all rows are durable."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.files.durable import write_durably

_IDENTIFYING_BYTES = 64 * 1024
"""Number of bytes at the beginning of a source that identify it. So a source may grow."""


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """The options of a feed that must be the same to resume the feed."""

    cut: bool
    delete: bool
    index: str = ""
    """Name of the index; empty for the default index."""
    tenant: str = ""
    """Tenant that the feed names; empty for none."""


@dataclass(frozen=True, slots=True)
class FeedSource:
    """Identifies the source of a feed, which must be the same to resume the feed."""

    beginning: str
    """SHA-256 of the first bytes; empty for standard input."""
    bytes: int
    """Number of bytes in the checksum `beginning`."""

    @classmethod
    def of(cls, path: Path | None, length: int = _IDENTIFYING_BYTES) -> "FeedSource":
        """Identifies a file, or standard input if `path` is None.

        Raises ArtefactError if the file cannot be read.
        """
        if path is None:
            return cls("", 0)
        try:
            with path.open("rb") as file:
                start = file.read(length)
        except OSError as error:
            raise ArtefactError(f"cannot read {path}: {error.strerror or error}") from error
        return cls(sha256(start).hexdigest(), len(start))


def beside(source: Path, index: str, tenant: str) -> Path:
    """Returns the resume file beside a source, of the feed to an index and for a tenant."""
    # no name of an index has a dot or an equals sign
    of_tenant = f"tenant={tenant}" if tenant else ""
    return source.with_name(".".join(filter(None, (source.name, index, of_tenant, "feeding"))))


class ResumeFile:
    """The resume file: beside the source, or at --resume-file."""

    def __init__(self, path: Path, options: FeedOptions) -> None:
        """`options` are those of the feed that is resumed, or can be."""
        self.path, self._options = path, options

    def read(self, source: Path | None) -> int:
        """Reads the line up to which all rows are durable; returns 0 if there is no file.

        Raises:
            ArtefactError: the file belongs to another source or other options, or cannot be read.

        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            line, stored = int(content["line"]), FeedSource(**content["source"])
            options = FeedOptions(**content["options"])
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ArtefactError(
                f"cannot resume from {self.path}: {error}; remove it to start again"
            ) from error
        if options != self._options or FeedSource.of(source, stored.bytes) != stored:
            raise ArtefactError(
                f"{self.path} belongs to another source or other options: resume with the same "
                "source and options, or remove this file to start again"
            )
        return line

    def write(self, line: int, source: FeedSource) -> None:
        """Stores the line up to which all rows are durable. Raises OSError if that fails."""
        content = {"line": line, "source": asdict(source), "options": asdict(self._options)}
        write_durably(self.path, json.dumps(content).encode())

    def remove(self) -> None:
        """Removes the file, if there is one."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
