"""A head store that can be unreachable or hang, and heads whose labels tell their version."""

import threading
from pathlib import Path

from small_heads import small_head
from tenacious import LONG

from winnow.errors import UnavailableError
from winnow.heads.artefact import HeadArtefact
from winnow.heads.manifest import EncoderEntry, HeadManifest
from winnow.heads.store import HeadRecord, HeadStore, open_store

PER_VERSION = 3
"""Number of labels of each head."""


def versioned_head(directory: Path, head: str, version: int) -> Path:
    """Writes a head whose labels and weights both tell its version."""
    labels = [label_of(version, place) for place in range(PER_VERSION)]
    return small_head(directory, head, version, labels=labels, says=version % PER_VERSION)


def label_of(version: int, place: int | None = None) -> str:
    """Returns the label that the head of a version predicts."""
    return f"version {version}: {version % PER_VERSION if place is None else place}"


class ScriptedStore(HeadStore):
    """A directory of heads, which fails or hangs on demand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inner: HeadStore = open_store(root / "store")
        self.away = False
        self.fails: Exception | None = None
        """Raised by `record`."""
        self.go_on = threading.Event()
        """While it is not set, `record` and `fetch` hang."""
        self.go_on.set()
        self.asked: list[str] = []
        """The head of each call of `record`."""
        self.fetched: list[tuple[str, int]] = []

    def add(self, head: str, version: int = 1, activate: bool = True) -> HeadRecord:
        """Publishes a version directly, even while the store is unreachable."""
        directory = versioned_head(self.root / f"{head}-{version}", head, version)
        return self.inner.publish(directory, activate)

    def damage(self, head: str, version: int, content: bytes = b"damaged") -> None:
        """Overwrites the model of a version."""
        (self.root / "store" / head / str(version) / "head.onnx").write_bytes(content)

    @property
    def name(self) -> str:
        return self.inner.name

    def encoder(self) -> EncoderEntry | None:
        return self.inner.encoder()

    def ids(self) -> list[str]:
        return self.inner.ids()

    def versions(self, head: str) -> list[int]:
        return self.inner.versions(head)

    def read_record(self, head: str) -> HeadRecord:
        self.asked.append(head)
        self._behave()
        if self.fails is not None:
            raise self.fails
        return self.inner.read_record(head)

    def manifest(self, head: str, version: int) -> HeadManifest:
        return self.inner.manifest(head, version)

    def fetch(self, head: str, version: int) -> HeadArtefact:
        self.fetched.append((head, version))
        self._behave()
        return self.inner.fetch(head, version)

    def publish(self, directory: Path, activate: bool = True) -> HeadRecord:
        return self.inner.publish(directory, activate)

    def rollback(self, head: str, version: int | None = None) -> HeadRecord:
        return self.inner.rollback(head, version)

    def pin(self, head: str, pinned: bool) -> HeadRecord:
        return self.inner.pin(head, pinned)

    def move(self, head: str, group: str) -> HeadRecord:
        return self.inner.move(head, group)

    def _behave(self) -> None:
        assert self.go_on.wait(LONG)
        if self.away:
            raise UnavailableError("head store cannot be used: no route")
