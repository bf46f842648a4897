"""A store of heads in files, all trained on one encoder.

All methods block on files, so call them in threads.

STORE/store.json              the encoder of all heads
STORE/HEAD/current.json       which version is served
STORE/HEAD/3/head.json, …     a version, which never changes
"""

import re
from pathlib import Path

from winnow.errors import ArtefactError, IdentityError, NotFoundError, UnavailableError, WinnowError
from winnow.heads.artefact import HeadArtefact, load_head
from winnow.heads.head import open_head
from winnow.heads.manifest import (
    FILE,
    MODEL,
    EncoderEntry,
    HeadManifest,
    parse_head_manifest,
    validate_head_id,
)
from winnow.heads.store.disk_cache import HeadDiskCache
from winnow.heads.store.records import CURRENT, STORE, HeadRecord, StoreRecord, parse_record
from winnow.packaged import generated_directory
from winnow.quoting import quoted
from winnow.storage import Storage, open_storage
from winnow.storage.local import LocalStorage

_VERSION = re.compile("[1-9][0-9]{0,9}")


class HeadStore:
    """Heads and their versions, which never change once published.

    Every method raises UnavailableError if the store cannot be reached, and ArtefactError if its
    files are damaged. Methods that take a head or a version raise NotFoundError if it is missing,
    except `versions`, which returns an empty list.
    """

    def __init__(self, storage: Storage, cache: HeadDiskCache | None = None) -> None:
        """`cache`: local copies of heads in remote storage; None for local storage."""
        self._storage, self._cache = storage, cache

    @property
    def name(self) -> str:
        """Path or URL of the store."""
        return self._storage.name

    def encoder(self) -> EncoderEntry | None:
        """Returns the encoder of all heads; None before the first head is published."""
        data = self._storage.read(STORE)
        return (
            parse_record(data, self._location(STORE), StoreRecord).encoder
            if data is not None
            else None
        )

    def ids(self) -> list[str]:
        """Returns the sorted ids of all heads, activated or not."""
        return sorted(name for name in self._storage.folders() if _is_head(name))

    def versions(self, head: str) -> list[int]:
        """Returns all versions of a head in ascending order; empty if there is no such head."""
        return sorted(int(name) for name in self._storage.folders(head) if _is_version(name))

    def read_record(self, head: str) -> HeadRecord:
        """Returns the record of a head; raises NotFoundError if no version is served."""
        path = f"{_checked_id(head)}/{CURRENT}"
        data = self._storage.read(path)
        record = parse_record(data, self._location(path), HeadRecord) if data is not None else None
        if record is None or not record.version:
            raise NotFoundError(f"no head {quoted(head)} in {self.name}")
        return record

    def manifest(self, head: str, version: int) -> HeadManifest:
        """Returns the manifest of a version."""
        path = f"{_checked_id(head)}/{version}/{FILE}"
        data = self._storage.read(path)
        if data is None:
            raise self._missing_version(head, version)
        location = self._location(path)
        return _check_identity(parse_head_manifest(data, location), head, version, location)

    def fetch(self, head: str, version: int) -> HeadArtefact:
        """Verifies a version, and returns it as a local directory."""
        directory = self._directory(_checked_id(head), version)
        if directory is None:
            raise self._missing_version(head, version)
        artefact = load_head(directory)
        _check_identity(artefact.manifest, head, version, str(directory))
        return artefact

    def publish(self, directory: Path, activate: bool = True) -> HeadRecord:
        """Adds the head in `directory`, tests it, and by default activates it.

        A version that is already published with the same content is only activated. Raises
        ArtefactError if the head does not work, or its version is published with other content.
        Raises IdentityError if the head was trained on another encoder than the store's heads.
        """
        source = load_head(directory)
        head, version = source.manifest.id, source.manifest.version
        if head == STORE:
            raise ArtefactError(f"{directory}: a head cannot be called {STORE}")
        open_head(source)
        with self._storage.locked():
            self._check_encoder(source.manifest)
            self._add_version(source)
            if activate:
                open_head(self.fetch(head, version))
                return self._activate(head, version)
            return self._record_or_empty(head)

    def rollback(self, head: str, version: int | None = None) -> HeadRecord:
        """Tests and activates `version`; by default the one that was served before."""
        with self._storage.locked():
            target = self._previous_version(head) if version is None else version
            open_head(self.fetch(head, target))
            return self._activate(head, target)

    def pin(self, head: str, pinned: bool) -> HeadRecord:
        """Sets whether servers keep a head in memory once they have loaded it."""
        return self._update_record(head, {"pinned": pinned})

    def move(self, head: str, group: str) -> HeadRecord:
        """Sets the encoder group that a head moved to; empty if it is back in this group."""
        return self._update_record(head, {"moved_to": group})

    def _check_encoder(self, manifest: HeadManifest) -> None:
        """Raises IdentityError if the store has another encoder; the first head sets it."""
        encoder = self.encoder()
        if encoder is None:
            self._storage.write(STORE, StoreRecord(encoder=manifest.encoder).to_bytes())
        elif (encoder.fingerprint, encoder.width) != (
            manifest.encoder.fingerprint,
            manifest.encoder.width,
        ):
            raise IdentityError(
                f"head {manifest.id} was trained on encoder {manifest.encoder.fingerprint} "
                f"({manifest.encoder.name}), but {self.name} holds heads of {encoder.fingerprint} "
                f"({encoder.name}): publish the head to another store, or train it again"
            )

    def _add_version(self, source: HeadArtefact) -> None:
        head, version = source.manifest.id, source.manifest.version
        published = self._storage.read(f"{head}/{version}/{FILE}")
        if published is None:
            self._publish(source)
        elif published != (source.directory / FILE).read_bytes():
            raise ArtefactError(
                f"{self.name} already has a different version {version} of head {head}, and "
                f"versions never change: publish this head as version "
                f"{max(self.versions(head)) + 1}"
            )
        else:
            self._repair_model(source)

    def _publish(self, source: HeadArtefact) -> None:
        """Writes a new version, then reads and tests the written files."""
        head, version = source.manifest.id, source.manifest.version

        def check(written: Path | None) -> None:
            directory = written or self._directory(head, version)
            if directory is None:
                raise UnavailableError(
                    f"head store {self.name} lost head {head} version {version} after writing it"
                )
            _verify_written(source.manifest, directory)

        self._storage.publish(f"{head}/{version}", source.directory, (MODEL, FILE), check)

    def _directory(self, head: str, version: int) -> Path | None:
        """Returns the local directory of a version; None if it is missing."""
        folder = f"{head}/{version}"
        if self._cache is None:
            return self._storage.directory(folder)
        manifest = self._storage.read(f"{folder}/{FILE}")
        if manifest is None:
            return None
        return self._cache.fetch(head, manifest, lambda: self._storage.read(f"{folder}/{MODEL}"))

    def _repair_model(self, source: HeadArtefact) -> None:
        """Rewrites the model of a published version if it is damaged or missing."""
        head, version = source.manifest.id, source.manifest.version
        try:
            self.fetch(head, version)
        except ArtefactError:
            model = source.open_model()
            self._storage.write(f"{head}/{version}/{MODEL}", model.read(model.size, 0))

    def _activate(self, head: str, version: int) -> HeadRecord:
        """Sets the served version and the previous one; keeps the rest of the record."""
        before = self._record_or_empty(head)
        if before.version == version:
            return before
        changes = {"version": version, "previous": before.version}
        return self._write_record(head, before.model_copy(update=changes))

    def _record_or_empty(self, head: str) -> HeadRecord:
        try:
            return self.read_record(head)
        except NotFoundError:
            return HeadRecord(version=0)

    def _update_record(self, head: str, changes: dict[str, object]) -> HeadRecord:
        with self._storage.locked():
            fields = {**self.read_record(head).model_dump(), **changes}
            return self._write_record(head, HeadRecord.model_validate(fields))

    def _write_record(self, head: str, record: HeadRecord) -> HeadRecord:
        self._storage.write(f"{head}/{CURRENT}", record.to_bytes())
        return record

    def _previous_version(self, head: str) -> int:
        record = self.read_record(head)
        if not record.previous:
            raise NotFoundError(
                f"head {head} has served no version before {record.version}: name one with "
                f"--version; {self.name} holds {self._describe_versions(head)}"
            )
        return record.previous

    def _missing_version(self, head: str, version: int) -> WinnowError:
        if version in self.versions(head):  # a publisher was killed, or the file was removed
            return ArtefactError(
                f"head {head} version {version} has no {FILE} in {self.name}: publish it again"
            )
        return NotFoundError(
            f"head {head} has no version {version}: {self.name} holds "
            f"{self._describe_versions(head)}"
        )

    def _describe_versions(self, head: str) -> str:
        match self.versions(head):
            case []:
                return "no version"
            case [one]:
                return f"version {one}"
            case several:
                return f"versions {', '.join(map(str, several))}"

    def _location(self, path: str) -> str:
        """Returns the full path or URL of a file of the store."""
        return f"{self.name.rstrip('/')}/{path}"


def open_store(url: str | Path, cache: Path | None = None) -> HeadStore:
    """Opens the store in a directory, or at any URL with `://` that fsspec supports.

    Args:
        url: a path or URL. The store may still be empty.
        cache: directory for copies of the heads at a URL; None for the default.

    Raises:
        UnavailableError: fsspec does not support the URL, or lacks the package for it.

    """
    storage = open_storage(url, "heads", must_exist=True)
    if isinstance(storage, LocalStorage):
        return HeadStore(storage)
    return HeadStore(storage, HeadDiskCache(cache or generated_directory() / "heads"))


def _verify_written(expected: HeadManifest, directory: Path) -> None:
    """Raises ArtefactError if the written head differs from `expected`, or fails its test."""
    written = load_head(directory)
    if written.manifest != expected:
        raise ArtefactError(f"{directory} changed while it was published: publish it again")
    open_head(written)


def _check_identity(manifest: HeadManifest, head: str, version: int, location: str) -> HeadManifest:
    if (manifest.id, manifest.version) != (head, version):
        raise ArtefactError(
            f"{location} is version {manifest.version} of head {manifest.id}, not version "
            f"{version} of {head}: it was probably copied there by hand; publish it instead"
        )
    return manifest


def _checked_id(head: str) -> str:
    """Returns `head` if it is a valid id, which is safe as a part of a path."""
    if not _is_head(head):
        raise NotFoundError(f"no head {quoted(head)}: the id is invalid")
    return head


def _is_head(name: str) -> bool:
    try:
        return bool(validate_head_id(name))
    except ValueError:
        return False


def _is_version(name: str) -> bool:
    return _VERSION.fullmatch(name) is not None
