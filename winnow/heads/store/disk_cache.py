"""Heads that were fetched from afar, on this machine.

A head is kept under the checksum of its manifest, which vouches for its model: so nothing in here
is ever of another store, or out of date. Several processes may use one cache at a time.
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

_KEPT = 4
"""Versions of one head."""


class HeadDiskCache:
    """A directory of heads. It may be removed at any time."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def fetched(self, head: str, manifest: bytes, model: Callable[[], bytes | None]) -> Path:
        """The directory of a head with this `head.json`, verified; calls `model` if it is not here.

        Raises:
            ArtefactError: manifest and model do not belong together, or the model is missing.
            UnavailableError: the cache cannot be written.

        """
        target = self._root / head / hashlib.sha256(manifest).hexdigest()
        with contextlib.suppress(ArtefactError):
            return load_head(target).directory
        content = model()
        if content is None:
            raise ArtefactError(f"head {head} has no {MODEL} in its store: publish it again")
        try:
            self._keep(target, manifest, content)
        except OSError as error:
            full = UnavailableError(
                f"cannot write {self._root}, which keeps fetched heads: {error.strerror or error}; "
                "set XDG_CACHE_HOME to another directory"
            )
            raise full.with_public("fetched heads cannot be cached on disk") from error
        return target

    def _keep(self, target: Path, manifest: bytes, model: bytes) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
        try:
            (aside / FILE).write_bytes(manifest)
            (aside / MODEL).write_bytes(model)
            load_head(aside)
            _put_in_place(aside, target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        _prune(target.parent)


def _put_in_place(aside: Path, target: Path) -> None:
    """Moves a copy into place. A copy of another process that was quicker stays, unless damaged."""
    try:
        aside.rename(target)
    except OSError:
        with contextlib.suppress(ArtefactError):
            load_head(target)
            return
        shutil.rmtree(target)
        aside.rename(target)


def _prune(directory: Path) -> None:
    """Removes the versions of a head that were fetched first."""
    found = [each for each in directory.iterdir() if not each.name.startswith(".")]
    with contextlib.suppress(OSError):
        found.sort(key=lambda each: each.stat().st_mtime)
    for each in found[:-_KEPT]:
        shutil.rmtree(each, ignore_errors=True)
