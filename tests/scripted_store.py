"""A store of heads that is away, or hangs, when a test says so; and heads whose version shows."""

import threading
from pathlib import Path

from small_heads import small_head

from winnow.errors import UnavailableError
from winnow.heads.artefact import HeadArtefact
from winnow.heads.manifest import EncoderEntry, HeadManifest
from winnow.heads.store import Current, HeadStore, open_store

PER_VERSION = 3
"""Labels of a version's head."""


def versioned_head(directory: Path, head: str, version: int) -> Path:
    """A head that says its version: of its labels, and by its weights."""
    labels = [label_of(version, place) for place in range(PER_VERSION)]
    return small_head(directory, head, version, labels=labels, says=version % PER_VERSION)


def label_of(version: int, place: int | None = None) -> str:
    """What the head of a version says, unless its model is of another version."""
    return f"version {version}: {version % PER_VERSION if place is None else place}"


class ScriptedStore:
    """A directory of heads, which fails or hangs on demand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inner: HeadStore = open_store(root / "store")
        self.away = False
        self.fails: Exception | None = None
        """Raised by `current`."""
        self.go_on = threading.Event()
        """While it is not set, every call hangs."""
        self.go_on.set()
        self.asked: list[str] = []
        """Heads whose current version was asked for."""
        self.fetched: list[tuple[str, int]] = []

    def add(self, head: str, version: int = 1, activate: bool = True) -> Current:
        """Publishes a version, past the script."""
        directory = versioned_head(self.root / f"{head}-{version}", head, version)
        return self.inner.publish(directory, activate)

    def damage(self, head: str, version: int, content: bytes = b"damaged") -> None:
        """Writes over the model of a version."""
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

    def current(self, head: str) -> Current:
        self.asked.append(head)
        self._behave()
        if self.fails is not None:
            raise self.fails
        return self.inner.current(head)

    def manifest(self, head: str, version: int) -> HeadManifest:
        return self.inner.manifest(head, version)

    def fetch(self, head: str, version: int) -> HeadArtefact:
        self.fetched.append((head, version))
        self._behave()
        return self.inner.fetch(head, version)

    def publish(self, directory: Path, activate: bool = True) -> Current:
        return self.inner.publish(directory, activate)

    def rollback(self, head: str, version: int | None = None) -> Current:
        return self.inner.rollback(head, version)

    def pin(self, head: str, pinned: bool) -> Current:
        return self.inner.pin(head, pinned)

    def move(self, head: str, group: str) -> Current:
        return self.inner.move(head, group)

    def _behave(self) -> None:
        assert self.go_on.wait(60)
        if self.away:
            raise UnavailableError("head store cannot be used: no route")
