"""Inspects a store of heads: lists its heads, and runs every version once."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from winnow.errors import ArtefactError, IdentityError, NotFoundError
from winnow.heads.head import open_head
from winnow.heads.store import HeadRecord, HeadStore

_READ_THREADS = 8
"""Number of heads to read in parallel, because a remote store replies slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedHead:
    """A head in a store, as `winnow heads list` shows it."""

    id: str
    version: int = 0
    """Served version; 0 if none is served."""
    versions: list[int] = field(default_factory=list)
    kind: str = ""
    labels: int = 0
    """Number of labels."""
    pinned: bool = False
    moved_to: str = ""
    """Encoder group that serves the head now; empty for the group of the store."""
    bytes: int = 0
    """Size of the model."""
    accuracy: dict[str, float] = field(default_factory=dict)
    fault: str = ""
    """Why the head cannot be served; empty if it can."""


def list_heads(store: HeadStore) -> list[ListedHead]:
    """Lists all heads of a store, sorted by id. A damaged head is listed with its fault."""
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        return list(pool.map(lambda head: _describe(store, head), store.ids()))


def _describe(store: HeadStore, head: str) -> ListedHead:
    versions = store.versions(head)
    try:
        current = _current(store, head)
        manifest = store.manifest(head, current.version or max(versions, default=0))
    except (ArtefactError, NotFoundError) as error:
        return ListedHead(id=head, versions=versions, fault=str(error))
    return ListedHead(
        id=manifest.id,
        version=current.version,
        versions=versions,
        kind=manifest.kind.value,
        labels=len(manifest.labels),
        pinned=current.pinned,
        moved_to=current.moved_to,
        bytes=manifest.model.bytes,
        accuracy=manifest.accuracy,
    )


def _current(store: HeadStore, head: str) -> HeadRecord:
    try:
        return store.read_record(head)
    except NotFoundError:
        return HeadRecord(version=0)


@dataclass(frozen=True, slots=True)
class VerifiedHead:
    """The result of opening and running one version of a head."""

    id: str
    version: int
    """0 if the served version is unknown."""
    served: bool
    fault: str = ""
    """Why the version does not work; empty if it does."""


def verify_heads(store: HeadStore, heads: Sequence[str]) -> Iterator[VerifiedHead]:
    """Opens and runs every version of each head, one after the other."""
    for head in heads:
        served = 0
        try:
            served = store.read_record(head).version
        except NotFoundError as error:
            if not store.versions(head):
                yield VerifiedHead(head, 0, False, str(error))
        except ArtefactError as error:
            yield VerifiedHead(head, 0, False, str(error))
        for version in sorted({*store.versions(head), served} - {0}):
            yield VerifiedHead(head, version, version == served, _find_fault(store, head, version))


def _find_fault(store: HeadStore, head: str, version: int) -> str:
    """Why a version does not work; empty if it does."""
    try:
        artefact = store.fetch(head, version)
        encoder = store.encoder()
        if encoder is not None and artefact.manifest.encoder.fingerprint != encoder.fingerprint:
            raise IdentityError(
                f"the head was trained on encoder {artefact.manifest.encoder.fingerprint}, but the "
                f"store has encoder {encoder.fingerprint}"
            )
        open_head(artefact)
    except (ArtefactError, IdentityError, NotFoundError) as error:
        return str(error)
    return ""
