"""A bundle from a directory or URL, verified, into a directory of this machine."""

from dataclasses import dataclass
from pathlib import Path

from winnow.bundle.bundle import Bundle, load_bundle
from winnow.bundle.manifest import FILE, BundleFile, read_manifest
from winnow.bundle.place import Place
from winnow.errors import ArtefactError, NotFoundError, UnavailableError
from winnow.files.aside import open_aside
from winnow.files.checksum import verify
from winnow.files.durable import sync_file, write_durably
from winnow.quoting import shown


@dataclass(frozen=True, slots=True)
class Pulled:
    """What became of a pull."""

    bundle: Bundle
    copied: bool
    """Whether it was copied now; else it was there before."""
    unreachable: str = ""
    """Why what was there before could not be compared with what is published."""


def pull_bundle(url: str, target: Path) -> Pulled:
    """Copies the bundle at `url` to `target`, unless it lies there already.

    `target` appears once all is there and verified. What an interrupted pull has copied is used.

    Raises:
        NotFoundError: there is no bundle at `url`.
        ArtefactError: it is damaged, `target` holds another one, or cannot be written.
        UnavailableError: `url` cannot be reached, or another process pulls into `target`.

    """
    if target.exists():
        return _kept(url, target)
    place = Place(url)
    manifest = _manifest(place)
    try:
        with open_aside(target) as aside:
            _fill(aside.content, place, manifest)
            aside.publish()
    except OSError as error:
        raise ArtefactError(
            f"cannot write {error.filename or target}: {error.strerror or error}: see that there "
            "is room and that it can be written, and run the same command again"
        ) from error
    return Pulled(load_bundle(target), copied=True)


def _kept(url: str, target: Path) -> Pulled:
    """A bundle that is there already is verified, and compared with what is published."""
    bundle = load_bundle(target)
    try:
        manifest = _manifest(Place(url))
    except (UnavailableError, NotFoundError) as error:
        return Pulled(bundle, copied=False, unreachable=str(error))
    if manifest != (target / FILE).read_bytes():
        raise ArtefactError(
            f"{target} holds another bundle than {shown(url)}: move it away, or pull into "
            "another directory"
        )
    return Pulled(bundle, copied=False)


def _manifest(place: Place) -> bytes:
    content = place.read(FILE)
    if content is None:
        raise NotFoundError(
            f"there is no bundle at {place.name}: publish one with `winnow bundle push`"
        )
    return content


def _fill(directory: Path, place: Place, manifest: bytes) -> None:
    """Copies every file that is not there, or not good; an interrupted pull left the others."""
    write_durably(directory / FILE, manifest)
    named = read_manifest(directory).files  # names of files only: the manifest is checked for that
    for each in directory.iterdir():
        if each.name != FILE and each.name not in named:
            each.unlink()  # of another bundle
    for name, entry in named.items():
        path = directory / name
        try:
            verify(path, entry.sha256, entry.bytes)
        except ArtefactError:
            place.get(name, path)
            _expect_good(path, entry, place)
            sync_file(path)


def _expect_good(path: Path, entry: BundleFile, place: Place) -> None:
    """Raises ArtefactError if a file that was just copied is not the one of the manifest."""
    try:
        verify(path, entry.sha256, entry.bytes)
    except ArtefactError as error:
        raise ArtefactError(
            f"the bundle at {place.name} is damaged: its {path.name} is not as its manifest says; "
            "publish it again, and run the same command again"
        ) from error
