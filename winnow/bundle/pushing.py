"""Publishing a bundle at a directory or URL, for machines that pull it."""

from pathlib import Path

from winnow.bundle.bundle import Bundle, load_bundle
from winnow.bundle.manifest import FILE
from winnow.bundle.place import Place
from winnow.errors import ArtefactError


def push_bundle(directory: Path, url: str) -> Bundle:
    """Copies a verified bundle to `url`; its manifest goes last, so that it is whole or not there.

    Raises:
        ArtefactError: the bundle is damaged, or another one is at `url`: what machines have pulled
            never changes.
        UnavailableError: `url` cannot be reached or written.

    """
    bundle = load_bundle(directory)
    place = Place(url)
    there = place.read(FILE)
    if there is not None and there != (directory / FILE).read_bytes():
        raise ArtefactError(
            f"another bundle is at {place.name}: give this one a place of its own, such as "
            f"{place.name.rstrip('/')}-{bundle.manifest.version}"
        )
    for name in (*bundle.manifest.files, FILE):
        place.put(directory / name, name)
    return bundle
