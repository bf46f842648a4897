"""The interface of a store of heads, all trained on one encoder.

All methods block on files, so call them in threads. Implementation:
`winnow.heads.store.file_store`, in a local directory or at any fsspec URL.
"""

from pathlib import Path
from typing import Protocol

from winnow.heads.artefact import HeadArtefact
from winnow.heads.manifest import EncoderEntry, HeadManifest
from winnow.heads.store.records import HeadRecord


class HeadStore(Protocol):
    """Heads and their versions, which never change once published.

    Every method raises UnavailableError if the store cannot be reached, and ArtefactError if its
    files are damaged. Methods that take a head or a version raise NotFoundError if it is missing,
    except `versions`, which returns an empty list.
    """

    @property
    def name(self) -> str:
        """Path or URL of the store."""

    def encoder(self) -> EncoderEntry | None:
        """Returns the encoder of all heads; None before the first head is published."""

    def ids(self) -> list[str]:
        """Returns the sorted ids of all heads, activated or not."""

    def versions(self, head: str) -> list[int]:
        """Returns all versions of a head in ascending order; empty if there is no such head."""

    def record(self, head: str) -> HeadRecord:
        """Returns the record of a head; raises NotFoundError if no version is served."""

    def manifest(self, head: str, version: int) -> HeadManifest:
        """Returns the manifest of a version."""

    def fetch(self, head: str, version: int) -> HeadArtefact:
        """Returns a verified version in a local directory."""

    def publish(self, directory: Path, activate: bool = True) -> HeadRecord:
        """Adds the head in `directory`, tests it, and activates it if requested.

        An identical published version is only activated. Raises ArtefactError if the head does not
        work, or that version was published with other content. Raises IdentityError if the head has
        another encoder than the store.
        """

    def rollback(self, head: str, version: int | None = None) -> HeadRecord:
        """Tests and activates an older version; by default the previously served one."""

    def pin(self, head: str, pinned: bool) -> HeadRecord:
        """Sets whether servers keep a head in memory once they have loaded it."""

    def move(self, head: str, group: str) -> HeadRecord:
        """Sets the encoder group that a head moved to; empty if it is back in this group."""
