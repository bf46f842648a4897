"""A local disk cache of heads that were fetched from a remote store.

The key of a version is the checksum of its manifest, which contains the checksum of its model. So
entries never become stale, and stores can share a cache. Several processes can, too.
"""

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from winnow.errors import ArtefactError, UnavailableError
from winnow.heads.artefact import load_head
from winnow.heads.manifest import FILE, MODEL

_MAX_VERSIONS = 4
"""Maximum number of cached versions of one head."""


class HeadDiskCache:
    """A directory of cached heads. Users may delete it at any time."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def fetch(self, head: str, manifest: bytes, read_model: Callable[[], bytes | None]) -> Path:
        """Returns the directory of the verified version that has this `head.json`.

        Calls `read_model` if the version is not cached. Raises ArtefactError if the model is
        missing or does not match the manifest. Raises UnavailableError if the cache cannot be
        written.
        """
        target = self._root / head / hashlib.sha256(manifest).hexdigest()
        with contextlib.suppress(ArtefactError):
            return load_head(target).directory
        model = read_model()
        if model is None:
            raise ArtefactError(f"head {head} has no {MODEL} in its store: publish it again")
        try:
            self._store(target, manifest, model)
        except OSError as error:
            unwritable = UnavailableError(
                f"cannot write the cache of heads in {self._root}: {error.strerror or error}; "
                "set XDG_CACHE_HOME to another directory"
            )
            raise unwritable.with_public("fetched heads cannot be cached on disk") from error
        return target

    def _store(self, target: Path, manifest: bytes, model: bytes) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
        try:
            (temporary / FILE).write_bytes(manifest)
            (temporary / MODEL).write_bytes(model)
            load_head(temporary)
            _move_into_cache(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        _prune(target.parent)


def _move_into_cache(temporary: Path, target: Path) -> None:
    """Renames a copy to `target`, unless another process has put an intact copy there."""
    try:
        temporary.rename(target)
    except OSError:
        with contextlib.suppress(ArtefactError):
            load_head(target)
            return
        shutil.rmtree(target)
        temporary.rename(target)


def _prune(directory: Path) -> None:
    """Removes the oldest versions of a head."""
    versions = [each for each in directory.iterdir() if not each.name.startswith(".")]
    with contextlib.suppress(OSError):
        versions.sort(key=lambda each: each.stat().st_mtime)
    for each in versions[:-_MAX_VERSIONS]:
        shutil.rmtree(each, ignore_errors=True)
