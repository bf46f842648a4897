"""Bundles at a directory or URL, published for machines that pull and verify them."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from winnow.bundle.bundle import Bundle, load_bundle
from winnow.bundle.manifest import FILE, read_manifest
from winnow.errors import ArtefactError, NotFoundError, UnavailableError
from winnow.files.durable import write_durably
from winnow.quoting import shortened, shown
from winnow.storage import Place, open_place
from winnow.storage.partial import restored_directory
from winnow.storage.pull import NoProgress, PulledFile, PullSource, pull_files

BUNDLES = "bundles"
"""The content of a place, in its errors."""


@dataclass(frozen=True, slots=True)
class PulledBundle:
    """The result of a pull."""

    bundle: Bundle
    copied: bool
    """Whether the pull copied it; else it was there before."""
    unreachable: str = ""
    """Why the present bundle could not be compared with the published one."""


def push_bundle(directory: Path, url: str) -> Bundle:
    """Copies a verified bundle to `url`; its manifest goes last, so that it is complete or absent.

    Raises ArtefactError if the bundle is damaged, or if another bundle or other files are at `url`:
    a bundle that machines have pulled never changes. Raises UnavailableError if `url` cannot be
    reached or written.
    """
    bundle = load_bundle(directory)
    place = open_place(url, BUNDLES)
    there = place.read(FILE)
    if there is not None and there != (directory / FILE).read_bytes():
        raise ArtefactError(
            f"another bundle is at {place.name}: give this one another place, such as "
            f"{place.name.rstrip('/')}-{bundle.manifest.version}"
        )
    files = (*bundle.manifest.files, FILE)
    if there is None and (others := sorted({*place.sizes(), *place.folders()}.difference(files))):
        raise ArtefactError(
            f"{place.name} is no place of a bundle alone, it holds {shortened(others[0])}: "
            "remove that, or give the bundle another place"
        )
    for name in files:
        place.upload(name, directory / name)
    return bundle


def pull_bundle(url: str, target: Path) -> PulledBundle:
    """Copies the bundle at `url` to `target`, unless it is there already.

    `target` appears once it is complete and verified; files of an interrupted pull are reused.
    Raises NotFoundError if there is no bundle at `url`. Raises ArtefactError if it is damaged, or
    `target` holds another one or cannot be written. Raises UnavailableError if `url` cannot be
    reached, or another process pulls into `target`.
    """
    if target.exists():
        return _kept(url, target)
    place = open_place(url, BUNDLES)
    manifest = _manifest(place)
    with restored_directory(target) as directory:
        _fill(directory, place, manifest)
    return PulledBundle(load_bundle(target), copied=True)


def _kept(url: str, target: Path) -> PulledBundle:
    """Verifies a bundle that is there already, and compares it with the published one."""
    bundle = load_bundle(target)
    try:
        manifest = _manifest(open_place(url, BUNDLES))
    except (UnavailableError, NotFoundError) as error:
        return PulledBundle(bundle, copied=False, unreachable=str(error))
    if manifest != (target / FILE).read_bytes():
        raise ArtefactError(
            f"{target} holds another bundle than {shown(url)}: move it away, or pull into "
            "another directory"
        )
    return PulledBundle(bundle, copied=False)


def _manifest(place: Place) -> bytes:
    content = place.read(FILE)
    if content is None:
        raise NotFoundError(
            f"there is no bundle at {place.name}: publish one with `winnow bundle push`"
        )
    return content


def _fill(directory: Path, place: Place, manifest: bytes) -> None:
    """Copies every file that an interrupted pull has not left there."""
    write_durably(directory / FILE, manifest)
    named = read_manifest(directory).files  # names of files only: the manifest is checked for that
    files = {FILE: PulledFile(FILE, hashlib.sha256(manifest).hexdigest(), len(manifest))}
    files |= {name: PulledFile(name, entry.sha256, entry.bytes) for name, entry in named.items()}
    source = PullSource(
        place=place,
        what=f"the bundle at {place.name}",
        if_missing="publish it again",
        if_damaged="publish it again, and run the same command again",
    )
    pull_files(source, files, directory, NoProgress())
