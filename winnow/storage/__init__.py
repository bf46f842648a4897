"""Directories and fsspec URLs that hold published files: snapshots, bundles and heads.

Knows how files are published whole and pulled verified; does not know what is in them.
"""

from pathlib import Path

from winnow.storage.local import LocalPlace
from winnow.storage.place import Place
from winnow.storage.remote import RemotePlace

__all__ = ["Place", "open_place"]

_LOCAL = ("file://", "local://")


def open_place(url: str | Path, purpose: str, must_exist: bool = False) -> Place:
    """The place at `url`: a directory, or anything with `://` that fsspec knows.

    Args:
        url: a path or URL.
        purpose: what the place holds, in the plural; errors name it.
        must_exist: whether reading from a local place that does not exist is an error.

    Raises UnavailableError if fsspec knows no such URL, or lacks the package for it.

    """
    text = str(url)
    for scheme in _LOCAL:  # fsspec would not make files durable there
        text = text.removeprefix(scheme)
    if "://" in text:
        return RemotePlace(text, purpose)
    return LocalPlace(Path(text), purpose, must_exist)
