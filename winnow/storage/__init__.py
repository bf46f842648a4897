"""Storage of snapshots, bundles and heads in directories and at fsspec URLs.

Publishes files atomically, and verifies pulled files; does not know what the files contain.
"""

from pathlib import Path

from winnow.storage.local import LocalStorage
from winnow.storage.storage import Storage

__all__ = ["Storage", "open_storage"]

_LOCAL = ("file://", "local://")


def absolute_url(url: str) -> str:
    """Returns a URL or an empty text unchanged, and a path as an absolute one."""
    return url if "://" in url or not url else str(Path(url).absolute())


def open_storage(url: str | Path, purpose: str, must_exist: bool = False) -> Storage:
    """Opens storage in a directory, or at any URL with `://` that fsspec supports.

    Args:
        url: a path or URL.
        purpose: plural noun for the content of the storage, such as `heads`, for error messages.
        must_exist: whether reading from a missing local directory is an error.

    Raises UnavailableError if fsspec does not support the URL, or lacks the package for it.

    """
    text = str(url)
    for scheme in _LOCAL:  # not by fsspec, which does not make local files durable
        text = text.removeprefix(scheme)
    if "://" in text:
        from winnow.storage.remote import RemoteStorage  # noqa: PLC0415 (slow to import)

        return RemoteStorage(text, purpose)
    return LocalStorage(Path(text), purpose, must_exist)
