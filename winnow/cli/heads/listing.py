"""What is in a store of heads."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from winnow.errors import ArtefactError, NotFoundError
from winnow.heads.manifest import HeadManifest
from winnow.heads.store import Current, HeadStore

_READERS = 8
"""Heads that are looked at together: a remote store answers slowly."""

_TELLING = ("entity_f1", "accuracy", "f1")
"""Figures by how much they tell, in percent, on test data."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A head in a store."""

    id: str
    version: int = 0
    """The one that is served; 0 if none is."""
    versions: list[int] = field(default_factory=list)
    kind: str = ""
    labels: int = 0
    pinned: bool = False
    moved_to: str = ""
    bytes: int = 0
    """Of the model."""
    accuracy: dict[str, float] = field(default_factory=dict)
    fault: str = ""
    """Why it cannot be served; empty if it can."""


def listed(store: HeadStore) -> list[Listed]:
    """All heads of a store, by id. One that is damaged is listed with what is wrong with it."""
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(lambda head: _listed(store, head), store.ids()))


def as_json(store: HeadStore, heads: list[Listed]) -> dict[str, Any]:
    """For programs."""
    encoder = store.encoder()
    return {
        "store": store.name,
        "encoder": encoder.model_dump() if encoder else None,
        "heads": [asdict(head) for head in heads],
    }


def table(heads: list[Listed]) -> Table:
    """For people."""
    shown = Table("head", "version", "versions", "kind", "labels", "kB", "measured", "notes")
    for head in heads:
        shown.add_row(
            head.id,
            str(head.version or "-"),
            " ".join(map(str, head.versions)),
            head.kind,
            f"{head.labels:,}",
            f"{head.bytes / 1e3:,.0f}",
            _measured(head.accuracy),
            _notes(head),
        )
    return shown


def _measured(accuracy: dict[str, float]) -> str:
    """The figure that tells most; the others are there for programs."""
    best = next((name for name in _TELLING if name in accuracy), next(iter(accuracy), ""))
    return f"{best} {accuracy[best]:.1f}" if best else ""


def _listed(store: HeadStore, head: str) -> Listed:
    versions = store.versions(head)
    try:
        current = _current(store, head)
        shown = current.version or max(versions, default=0)
        manifest = store.manifest(head, shown)
    except (ArtefactError, NotFoundError) as error:
        return Listed(head, versions=versions, fault=str(error))
    return _described(manifest, versions, current)


def _current(store: HeadStore, head: str) -> Current:
    try:
        return store.current(head)
    except NotFoundError:
        return Current(version=0)


def _described(manifest: HeadManifest, versions: list[int], current: Current) -> Listed:
    return Listed(
        manifest.id,
        current.version,
        versions,
        manifest.kind.value,
        len(manifest.labels),
        current.pinned,
        current.moved_to,
        manifest.model.bytes,
        manifest.accuracy,
    )


def _notes(head: Listed) -> str:
    notes = [head.fault] if head.fault else []
    notes += ["pinned"] if head.pinned else []
    notes += [f"moved to ring {head.moved_to}"] if head.moved_to else []
    return "; ".join(notes)
