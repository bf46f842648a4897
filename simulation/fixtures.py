"""The files that all simulations of this process share: the bundle, and indexes as built."""

import shutil
import tempfile
from functools import cache
from pathlib import Path

from simulation.index import build_index
from simulation.models import FIRST_VERSION, make_bundle
from winnow.bundle import Bundle
from winnow.domain.tenant import stored_id


def built_texts(count: int, tenants: int = 0) -> dict[str, str]:
    """Returns the texts of an index as it was built, by stored id."""
    return {
        stored_id(f"t{number % tenants}" if tenants else "", f"built-{number}"): (
            f"w{number} w{number + 7} b{number}"
        )
        for number in range(count)
    }


@cache
def directory() -> Path:
    """Returns a directory in memory, if the system has one."""
    memory = Path("/dev/shm")  # noqa: S108 (Linux's file system in memory)
    parent = memory if memory.is_dir() else None
    return Path(tempfile.mkdtemp(prefix="winnow-simulation-", dir=parent))


def bundle(version: str = FIRST_VERSION) -> Bundle:
    """Returns a version of the bundle of the stand-ins."""
    return _made_bundle(version)


@cache
def _made_bundle(version: str) -> Bundle:
    path = directory() / f"bundle-{version}"
    path.mkdir()
    return make_bundle(path, version)


@cache
def index(shards: int, passages: int, tenants: int = 0) -> Path:
    """Returns an index as it was built."""
    path = directory() / f"index-{shards}-{passages}-{tenants}"
    path.mkdir()
    texts = built_texts(passages, tenants)
    build_index(bundle(), path, texts, shards, tenants=tenants > 0)
    return path


def remove() -> None:
    """Removes all of these files."""
    shutil.rmtree(directory(), ignore_errors=True)
    for each in (directory, _made_bundle, index):
        each.cache_clear()
