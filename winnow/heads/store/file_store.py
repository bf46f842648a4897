"""A store of heads in files.

STORE/store.json              the encoder of all heads
STORE/HEAD/current.json       which version is served
STORE/HEAD/3/head.json, …     a version, which never changes
"""

import re
from functools import partial
from pathlib import Path

from winnow.errors import ArtefactError, IdentityError, NotFoundError, WinnowError
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
from winnow.heads.store.files import StoreFiles
from winnow.heads.store.records import CURRENT, STORE, Current, StoreRecord, parsed
from winnow.quoting import quoted

_VERSION = re.compile("[1-9][0-9]{0,9}")


class FileStore:
    """A `HeadStore` in files that are local or remote."""

    def __init__(self, files: StoreFiles) -> None:
        self._files = files

    @property
    def name(self) -> str:
        return self._files.name

    def encoder(self) -> EncoderEntry | None:
        data = self._files.read(STORE)
        return parsed(data, self._place(STORE), StoreRecord).encoder if data is not None else None

    def ids(self) -> list[str]:
        return sorted(name for name in self._files.folders() if _is_head(name))

    def versions(self, head: str) -> list[int]:
        return sorted(int(name) for name in self._files.folders(head) if _is_version(name))

    def current(self, head: str) -> Current:
        data = self._files.read(_known(head), CURRENT)
        current = parsed(data, self._place(head, CURRENT), Current) if data is not None else None
        if current is None or not current.version:
            raise NotFoundError(f"no head {quoted(head)} in {self.name}")
        return current

    def manifest(self, head: str, version: int) -> HeadManifest:
        data = self._files.read(_known(head), str(version), FILE)
        if data is None:
            raise self._missing(head, version)
        place = self._place(head, str(version), FILE)
        return _expected(parsed_head_manifest(data, place), head, version, place)

    def fetch(self, head: str, version: int) -> HeadArtefact:
        directory = self._files.fetch(_known(head), str(version))
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
        with self._files.writing():
            self._admit(source.manifest)
            self._take_in(source)
            if activate:
                open_head(self.fetch(head, version))
                return self._serve(head, version)
            return self._served(head)

    def rollback(self, head: str, version: int | None = None) -> Current:
        with self._files.writing():
            wanted = self._previous(head) if version is None else version
            open_head(self.fetch(head, wanted))
            return self._serve(head, wanted)

    def pin(self, head: str, pinned: bool) -> Current:
        return self._change(head, {"pinned": pinned})

    def move(self, head: str, ring: str) -> Current:
        return self._change(head, {"moved_to": ring})

    def _admit(self, manifest: HeadManifest) -> None:
        """Refuses heads of another encoder; the first head says which one it is."""
        encoder = self.encoder()
        if encoder is None:
            self._files.replace(StoreRecord(encoder=manifest.encoder).written(), STORE)
        elif (encoder.fingerprint, encoder.width) != (
            manifest.encoder.fingerprint,
            manifest.encoder.width,
        ):
            raise IdentityError(
                f"head {manifest.id} was trained on encoder {manifest.encoder.fingerprint} "
                f"({manifest.encoder.name}), and {self.name} holds heads of {encoder.fingerprint} "
                f"({encoder.name}): publish it into another store, or train it anew"
            )

    def _take_in(self, source: HeadArtefact) -> None:
        head, version = source.manifest.id, source.manifest.version
        there = self._files.read(head, str(version), FILE)
        if there is None:
            self._files.put(source.directory, partial(_try, source.manifest), head, str(version))
        elif there != (source.directory / FILE).read_bytes():
            raise ArtefactError(
                f"{self.name} has another version {version} of head {head}, and versions never "
                f"change: publish it as version {max(self.versions(head)) + 1}"
            )
        else:
            self._mend(source)

    def _mend(self, source: HeadArtefact) -> None:
        """Writes a damaged model again; the manifest vouches that it is the same."""
        head, version = source.manifest.id, source.manifest.version
        try:
            self.fetch(head, version)
        except ArtefactError:
            model = source.model()
            self._files.replace(model.read(model.size, 0), head, str(version), MODEL)

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
        with self._files.writing():
            before = self.current(head)
            return self._write(head, Current.model_validate({**before.model_dump(), **changes}))

    def _write(self, head: str, current: Current) -> Current:
        self._files.replace(current.written(), head, CURRENT)
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

    def _place(self, *path: str) -> str:
        return "/".join([self.name.rstrip("/"), *path])


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
