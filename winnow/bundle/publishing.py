"""Pushes bundles to a directory or URL, and pulls and verifies them on other machines."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from winnow.bundle.bundle import Bundle, load_bundle
from winnow.bundle.manifest import FILE, read_manifest
from winnow.errors import ArtefactError, NotFoundError, UnavailableError
from winnow.files.durable import write_durably
from winnow.quoting import shortened, shown
from winnow.storage import Storage, open_storage
from winnow.storage.partial import restored_directory
from winnow.storage.pull import NoProgress, PulledFile, PullSource, pull_files

_PURPOSE = "bundles"
"""Names the content of the storage in error messages."""


@dataclass(frozen=True, slots=True)
class PulledBundle:
    """A bundle in the target directory of a pull."""

    bundle: Bundle
    copied: bool
    """Whether the pull copied the bundle; False if the target already held it."""
    unreachable: str = ""
    """Error if the published bundle could not be compared with the target; empty otherwise."""


def push_bundle(directory: Path, url: str) -> Bundle:
    """Verifies a bundle and uploads it to `url`, the manifest last.

    A published bundle never changes: raises ArtefactError if `url` holds another bundle or other
    files. Also raises ArtefactError if the local bundle is damaged. Raises UnavailableError if
    `url` cannot be reached or written.
    """
    bundle = load_bundle(directory)
    storage = open_storage(url, _PURPOSE)
    published = storage.read(FILE)
    if published is not None and published != (directory / FILE).read_bytes():
        raise ArtefactError(
            f"{storage.name} already holds another bundle: push this one to another URL, such as "
            f"{storage.name.rstrip('/')}-{bundle.manifest.version}"
        )
    files = (*bundle.manifest.files, FILE)
    entries = {*storage.sizes(), *storage.folders()}
    if published is None and (others := sorted(entries.difference(files))):
        raise ArtefactError(
            f"{storage.name} already holds {shortened(others[0])}, which is not part of this "
            "bundle: remove it, or push the bundle to another URL"
        )
    for name in files:
        storage.upload(name, directory / name)
    return bundle


def pull_bundle(url: str, target: Path) -> PulledBundle:
    """Copies the bundle at `url` to `target`, unless `target` already holds it.

    `target` appears only when complete and verified. A repeated pull reuses the files of an
    interrupted one.
    Raises NotFoundError if there is no bundle at `url`. Raises ArtefactError if the bundle is
    damaged, or `target` holds another bundle or cannot be written. Raises UnavailableError if
    `url` cannot be reached, or another process pulls into `target`.
    """
    if target.exists():
        return _check_existing(url, target)
    storage = open_storage(url, _PURPOSE)
    manifest = _read_manifest(storage)
    with restored_directory(target) as directory:
        _pull_missing_files(directory, storage, manifest)
    return PulledBundle(load_bundle(target), copied=True)


def _check_existing(url: str, target: Path) -> PulledBundle:
    """Verifies the bundle in `target`, and compares it with the published one."""
    bundle = load_bundle(target)
    try:
        manifest = _read_manifest(open_storage(url, _PURPOSE))
    except (UnavailableError, NotFoundError) as error:
        return PulledBundle(bundle, copied=False, unreachable=str(error))
    if manifest != (target / FILE).read_bytes():
        raise ArtefactError(
            f"{target} holds another bundle than {shown(url)}: move {target} away, or pull into "
            "another directory"
        )
    return PulledBundle(bundle, copied=False)


def _read_manifest(storage: Storage) -> bytes:
    content = storage.read(FILE)
    if content is None:
        raise NotFoundError(
            f"there is no bundle at {storage.name}: publish one with `winnow bundle push`"
        )
    return content


def _pull_missing_files(directory: Path, storage: Storage, manifest: bytes) -> None:
    """Copies the files of the bundle that `directory` does not hold yet."""
    write_durably(directory / FILE, manifest)
    entries = read_manifest(directory).files  # checked: names without a folder
    files = {FILE: PulledFile(FILE, hashlib.sha256(manifest).hexdigest(), len(manifest))}
    files |= {name: PulledFile(name, entry.sha256, entry.bytes) for name, entry in entries.items()}
    source = PullSource(
        storage=storage,
        source=f"the bundle at {storage.name}",
        advice_if_missing="publish it again",
        advice_if_damaged="publish it again, and run the same command again",
    )
    pull_files(source, files, directory, NoProgress())
