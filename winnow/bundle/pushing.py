"""Publishing a bundle at a directory or URL, for machines that pull it."""

from pathlib import Path

from winnow.bundle.bundle import Bundle, load_bundle
from winnow.bundle.manifest import FILE
from winnow.bundle.place import Place
from winnow.errors import ArtefactError
from winnow.quoting import shortened


def push_bundle(directory: Path, url: str) -> Bundle:
    """Copies a verified bundle to `url`; its manifest goes last, so that it is whole or not there.

    Raises:
        ArtefactError: the bundle is damaged; another one is at `url`, where what machines have
            pulled never changes; or other files are.
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
    files = (*bundle.manifest.files, FILE)
    if there is None and (others := sorted(set(place.names()).difference(files))):
        raise ArtefactError(
            f"{place.name} is no place of a bundle alone, it holds {shortened(others[0])}: "
            "remove that, or give the bundle a place of its own"
        )
    for name in files:
        place.put(directory / name, name)
    return bundle
