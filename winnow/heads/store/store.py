"""The interface of a store of heads, all trained on one encoder.

All methods block on files, so call them in threads. `winnow.heads.store.file_store` implements the
interface for local directories and fsspec URLs.
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
        """Verifies a version, and returns it as a local directory."""

    def publish(self, directory: Path, activate: bool = True) -> HeadRecord:
        """Adds the head in `directory`, tests it, and by default activates it.

        A version that is already published with the same content is only activated. Raises
        ArtefactError if the head does not work, or its version is published with other content.
        Raises IdentityError if the head was trained on another encoder than the store's heads.
        """

    def rollback(self, head: str, version: int | None = None) -> HeadRecord:
        """Tests and activates `version`; by default the one that was served before."""

    def pin(self, head: str, pinned: bool) -> HeadRecord:
        """Sets whether servers keep a head in memory once they have loaded it."""

    def move(self, head: str, group: str) -> HeadRecord:
        """Sets the encoder group that a head moved to; empty if it is back in this group."""
