"""The store of many heads that all rows share: made once, and kept."""

import shutil
from pathlib import Path

from bench.heads.models import LABELS, publish, trained_shape
from winnow.bundle import Bundle
from winnow.heads.store import HeadStore, open_store
from winnow.packaged import made_files
from winnow.telemetry.progress import StageProgress

MANY = 1_000
_FORMAT = 2


def head_ids(number: int = MANY) -> list[str]:
    """The heads of the store."""
    return [f"tenant-{place:04}" for place in range(number)]


def many_heads(bundle: Bundle, progress: StageProgress) -> Path:
    """The directory of a store of `MANY` heads, each published in order."""
    name = f"{bundle.manifest.states_fingerprint}-{MANY}-{_FORMAT}"
    place = made_files() / "bench-heads" / name
    store = open_store(place)
    if place.is_dir() and len(store.ids()) == MANY:
        return place
    shutil.rmtree(place, ignore_errors=True)  # one that was not finished
    fill(store, bundle, head_ids(), progress)
    return place


def fill(store: HeadStore, bundle: Bundle, ids: list[str], progress: StageProgress) -> None:
    """Publishes heads of the same content under these ids."""
    model = trained_shape(bundle.manifest.encoder.dimension)
    labels = [f"label-{number}" for number in range(LABELS)]
    progress.start(f"publishing {len(ids)} heads", len(ids))
    for head in ids:
        publish(store, bundle, head, 1, labels, model)
        progress.advance()
