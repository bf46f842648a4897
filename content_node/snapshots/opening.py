"""From a path or a URL to a place of snapshots, and to a shard that is named in it."""

import re
from pathlib import Path

from winnow.content_node.snapshots.local_place import LocalPlace
from winnow.content_node.snapshots.place import Place
from winnow.content_node.snapshots.remote_place import RemotePlace

_LOCAL = ("file://", "local://")
_SHARD = re.compile(r"shard-[0-9]{5}-of-[0-9]{5}")


def open_place(url: str) -> Place:
    """The place at `url`: a directory, or anything with `://` that fsspec knows.

    Raises:
        UnavailableError: fsspec knows no such URL, or lacks the package for it.

    """
    for scheme in _LOCAL:  # files are made durable there
        if url.startswith(scheme):
            return LocalPlace(Path(url.removeprefix(scheme)))
    return RemotePlace(url) if "://" in url else LocalPlace(Path(url))


def split(url: str) -> tuple[str, str]:
    """The place that `url` names, and the shard in it; empty for the whole index."""
    place, slash, last = url.rstrip("/").rpartition("/")
    return (place, last) if slash and _SHARD.fullmatch(last) else (url, "")
