"""A store of heads in files.

STORE/store.json              the encoder of all heads
STORE/HEAD/current.json       which version is served
STORE/HEAD/3/head.json, …     a version, which never changes
"""

import re
from pathlib import Path

from winnow.errors import (
    ArtefactError,
    IdentityError,
    NotFoundError,
    UnavailableError,
    WinnowError,
)
from winnow.heads.artefact import HeadArtefact, load_head
from winnow.heads.head import open_head
from winnow.heads.manifest import (
    FILE,
    MODEL,
    EncoderEntry,
    HeadManifest,
    head_id,
    parsed_head_manifest,
)
from winnow.heads.store.disk_cache import HeadDiskCache
from winnow.heads.store.records import CURRENT, STORE, Current, StoreRecord, parsed
from winnow.heads.store.store import HeadStore
from winnow.packaged import made_files
from winnow.quoting import quoted
from winnow.storage import Storage, open_storage
from winnow.storage.local import LocalStorage

_VERSION = re.compile("[1-9][0-9]{0,9}")


class FileStore:
    """A `HeadStore` in a place that is local or remote."""

    def __init__(self, place: Storage, cache: HeadDiskCache | None = None) -> None:
        """`cache`: where the heads of a remote place are kept; None for a local place."""
        self._place, self._cache = place, cache

    @property
    def name(self) -> str:
        return self._place.name

    def encoder(self) -> EncoderEntry | None:
        data = self._place.read(STORE)
        return parsed(data, self._at(STORE), StoreRecord).encoder if data is not None else None

    def ids(self) -> list[str]:
        return sorted(name for name in self._place.folders() if _is_head(name))

    def versions(self, head: str) -> list[int]:
        return sorted(int(name) for name in self._place.folders(head) if _is_version(name))

    def current(self, head: str) -> Current:
        path = f"{_known(head)}/{CURRENT}"
        data = self._place.read(path)
        current = parsed(data, self._at(path), Current) if data is not None else None
        if current is None or not current.version:
            raise NotFoundError(f"no head {quoted(head)} in {self.name}")
        return current

    def manifest(self, head: str, version: int) -> HeadManifest:
        path = f"{_known(head)}/{version}/{FILE}"
        data = self._place.read(path)
        if data is None:
            raise self._missing(head, version)
        place = self._at(path)
        return _expected(parsed_head_manifest(data, place), head, version, place)

    def fetch(self, head: str, version: int) -> HeadArtefact:
        directory = self._directory(_known(head), version)
        if directory is None:
            raise self._missing(head, version)
        artefact = load_head(directory)
        _expected(artefact.manifest, head, version, str(directory))
        return artefact

    def publish(self, directory: Path, activate: bool = True) -> Current:
        source = load_head(directory)
        head, version = source.manifest.id, source.manifest.version
        if head == STORE:
            raise ArtefactError(f"{directory}: a head cannot be called {STORE}")
        open_head(source)
        with self._place.locked():
            self._admit(source.manifest)
            self._take_in(source)
            if activate:
                open_head(self.fetch(head, version))
                return self._serve(head, version)
            return self._served(head)

    def rollback(self, head: str, version: int | None = None) -> Current:
        with self._place.locked():
            wanted = self._previous(head) if version is None else version
            open_head(self.fetch(head, wanted))
            return self._serve(head, wanted)

    def pin(self, head: str, pinned: bool) -> Current:
        return self._change(head, {"pinned": pinned})

    def move(self, head: str, group: str) -> Current:
        return self._change(head, {"moved_to": group})

    def _admit(self, manifest: HeadManifest) -> None:
        """Refuses heads of another encoder; the first head says which one it is."""
        encoder = self.encoder()
        if encoder is None:
            self._place.write(STORE, StoreRecord(encoder=manifest.encoder).written())
        elif (encoder.fingerprint, encoder.width) != (
            manifest.encoder.fingerprint,
            manifest.encoder.width,
        ):
            raise IdentityError(
                f"head {manifest.id} was trained on encoder {manifest.encoder.fingerprint} "
                f"({manifest.encoder.name}), and {self.name} holds heads of {encoder.fingerprint} "
                f"({encoder.name}): publish it into another store, or train it again"
            )

    def _take_in(self, source: HeadArtefact) -> None:
        head, version = source.manifest.id, source.manifest.version
        there = self._place.read(f"{head}/{version}/{FILE}")
        if there is None:
            self._publish(source)
        elif there != (source.directory / FILE).read_bytes():
            raise ArtefactError(
                f"{self.name} has another version {version} of head {head}, and versions never "
                f"change: publish it as version {max(self.versions(head)) + 1}"
            )
        else:
            self._mend(source)

    def _publish(self, source: HeadArtefact) -> None:
        """Writes a new version, and tries it out as it was written."""
        head, version = source.manifest.id, source.manifest.version

        def check(written: Path | None) -> None:
            directory = written or self._directory(head, version)
            if directory is None:
                raise UnavailableError(f"head store {self.name} does not keep what is written")
            _try(source.manifest, directory)

        self._place.publish(f"{head}/{version}", source.directory, (MODEL, FILE), check)

    def _directory(self, head: str, version: int) -> Path | None:
        """A version on this machine; None if there is none. ArtefactError if it is damaged."""
        folder = f"{head}/{version}"
        if self._cache is None:
            return self._place.directory(folder)
        manifest = self._place.read(f"{folder}/{FILE}")
        if manifest is None:
            return None
        return self._cache.fetched(head, manifest, lambda: self._place.read(f"{folder}/{MODEL}"))

    def _mend(self, source: HeadArtefact) -> None:
        """Writes a damaged model again; the manifest vouches that it is the same."""
        head, version = source.manifest.id, source.manifest.version
        try:
            self.fetch(head, version)
        except ArtefactError:
            model = source.model()
            self._place.write(f"{head}/{version}/{MODEL}", model.read(model.size, 0))

    def _serve(self, head: str, version: int) -> Current:
        """Switches to a version, and remembers the one before; pins and moves stay."""
        before = self._served(head)
        if before.version == version:
            return before
        changes = {"version": version, "previous": before.version}
        return self._write(head, before.model_copy(update=changes))

    def _served(self, head: str) -> Current:
        try:
            return self.current(head)
        except NotFoundError:
            return Current(version=0)

    def _change(self, head: str, changes: dict[str, object]) -> Current:
        with self._place.locked():
            before = self.current(head)
            return self._write(head, Current.model_validate({**before.model_dump(), **changes}))

    def _write(self, head: str, current: Current) -> Current:
        self._place.write(f"{head}/{CURRENT}", current.written())
        return current

    def _previous(self, head: str) -> int:
        current = self.current(head)
        if not current.previous:
            raise NotFoundError(
                f"head {head} has served no version before {current.version}: name one by "
                f"--version; {self.name} holds {self._listed(head)}"
            )
        return current.previous

    def _missing(self, head: str, version: int) -> WinnowError:
        if version in self.versions(head):  # its writer was ended, or somebody removed the file
            return ArtefactError(
                f"head {head} version {version} has no {FILE} in {self.name}: publish it again"
            )
        return NotFoundError(
            f"head {head} has no version {version}: {self.name} holds {self._listed(head)}"
        )

    def _listed(self, head: str) -> str:
        match self.versions(head):
            case []:
                return "none of it"
            case [one]:
                return f"version {one} of it"
            case several:
                return f"versions {', '.join(map(str, several))} of it"

    def _at(self, path: str) -> str:
        """A file of the store, for errors."""
        return f"{self.name.rstrip('/')}/{path}"


def open_store(url: str | Path, cache: Path | None = None) -> HeadStore:
    """The store at `url`: a directory, or anything with `://` that fsspec knows.

    Args:
        url: a path or URL. There may be nothing yet.
        cache: where heads that are fetched from a URL are kept; None for the usual place.

    Raises:
        UnavailableError: fsspec knows no such URL, or lacks the package for it.

    """
    place = open_storage(url, "heads", must_exist=True)
    if isinstance(place, LocalStorage):
        return FileStore(place)
    return FileStore(place, HeadDiskCache(cache or made_files() / "heads"))


def _try(expected: HeadManifest, directory: Path) -> None:
    """Raises ArtefactError if the head that was written is another one, or does not work."""
    written = load_head(directory)
    if written.manifest != expected:
        raise ArtefactError(f"{directory} changed while it was published: publish it again")
    open_head(written)


def _expected(manifest: HeadManifest, head: str, version: int, place: str) -> HeadManifest:
    if (manifest.id, manifest.version) != (head, version):
        raise ArtefactError(
            f"{place} is version {manifest.version} of head {manifest.id}, not version {version} "
            f"of {head}: it was put there by hand; publish it instead"
        )
    return manifest


def _known(head: str) -> str:
    """`head`, which is part of a path from here on."""
    if not _is_head(head):
        raise NotFoundError(f"no head {quoted(head)}: that is no id of a head")
    return head


def _is_head(name: str) -> bool:
    try:
        return bool(head_id(name))
    except ValueError:
        return False


def _is_version(name: str) -> bool:
    return _VERSION.fullmatch(name) is not None
