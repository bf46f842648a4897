"""From a path or a URL to a store."""

from pathlib import Path

from winnow.heads.store.cache import HeadCache
from winnow.heads.store.file_store import FileStore
from winnow.heads.store.files import StoreFiles
from winnow.heads.store.local_files import LocalFiles
from winnow.heads.store.remote_files import RemoteFiles
from winnow.heads.store.store import HeadStore
from winnow.packaged import made_files

_LOCAL = ("file://", "local://")


def open_store(place: str | Path, cache: Path | None = None) -> HeadStore:
    """The store at `place`: a directory, or anything with `://` that fsspec knows.

    Args:
        place: a path or URL. There may be nothing yet.
        cache: where heads that are fetched from a URL are kept; None for the usual place.

    Raises:
        UnavailableError: fsspec knows no such URL, or lacks the package for it.

    """
    return FileStore(_files(str(place), cache))


def _files(place: str, cache: Path | None) -> StoreFiles:
    for scheme in _LOCAL:  # renames are better than what fsspec does there
        if place.startswith(scheme):
            return LocalFiles(Path(place.removeprefix(scheme)))
    if "://" not in place:
        return LocalFiles(Path(place))
    return RemoteFiles(place, HeadCache(cache or made_files() / "heads"))
