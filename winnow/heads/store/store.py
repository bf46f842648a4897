"""The one interface of a store of heads.

A store belongs to one encoder. All its methods wait for files, so they are called in threads.
Implementation: `winnow.heads.store.file_store`, on a local directory or any fsspec URL.
"""

from pathlib import Path
from typing import Protocol

from winnow.heads.artefact import HeadArtefact
from winnow.heads.manifest import EncoderEntry, HeadManifest
from winnow.heads.store.records import Current


class HeadStore(Protocol):
    """Heads with their versions, which never change once they are published.

    Every method raises UnavailableError if the store cannot be reached, and ArtefactError if what
    lies in it is damaged.
    """

    @property
    def name(self) -> str:
        """Its path or URL."""

    def encoder(self) -> EncoderEntry | None:
        """The encoder of all heads; None before the first one is published."""

    def ids(self) -> list[str]:
        """The heads, sorted. One that was never activated is among them."""

    def versions(self, head: str) -> list[int]:
        """All versions of a head, in ascending order; none if there is no such head."""

    def current(self, head: str) -> Current:
        """Which version is served; raises NotFoundError if none is."""

    def manifest(self, head: str, version: int) -> HeadManifest:
        """The manifest of a version; raises NotFoundError if there is no such version."""

    def fetch(self, head: str, version: int) -> HeadArtefact:
        """A version in a local directory, verified; raises NotFoundError if there is none."""

    def publish(self, directory: Path, activate: bool = True) -> Current:
        """Takes in the head in `directory`, tries it out, and has it served if `activate`.

        A version that is there already, byte for byte, is only activated.

        Raises:
            ArtefactError: it does not work, or that version is there with other content.
            IdentityError: it is of another encoder than the heads of this store.

        """

    def rollback(self, head: str, version: int | None = None) -> Current:
        """Has an older version served, once it was tried out; None: the one before the last switch.

        Raises:
            NotFoundError: there is no such version.

        """

    def pin(self, head: str, pinned: bool) -> Current:
        """Says whether servers keep a head in memory once it is there; NotFoundError as above."""

    def move(self, head: str, group: str) -> Current:
        """Records which group serves a head now; empty for this one. NotFoundError as above."""
