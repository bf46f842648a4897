"""Refits the heads of one encoder for another, one by one.

The old store serves on. A head moves once the new one is published and is about as accurate as the
old one. A head that fails stays in its place, and the reason is printed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from models.heads.making import HeadMaker, make_head
from models.heads.measured import comparable
from models.heads.record import REFIT_OF, HeadNaming, recorded_job
from models.training.loop import TrainingError
from winnow.errors import IdentityError, NotFoundError, WinnowError
from winnow.heads.manifest import HeadManifest
from winnow.heads.store.store import HeadStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Refit:
    """The stores of a refit, and its limits."""

    old: HeadStore
    new: HeadStore
    group: str
    """Name of the encoder group of the new encoder."""
    worse: float
    """Points of accuracy that a head may lose."""
    directories: Sequence[Path]
    """Directories that are searched for training data that has moved."""
    maker: HeadMaker


def refit(work: Refit, only: Sequence[str]) -> list[str]:
    """Refits the heads of the old store, or `only` some; returns the ids of the failed ones.

    Heads that were moved before are left alone, so that a refit that was interrupted goes on.

    Raises:
        IdentityError: the heads of the old store are made for this encoder already.

    """
    encoder, bundle = work.old.encoder(), work.maker.bundle
    if encoder and encoder.fingerprint == bundle.manifest.states_fingerprint:
        raise IdentityError(
            f"the heads of {work.old.name} are made for the encoder of {bundle.directory} already: "
            "name the bundle of the new encoder"
        )
    failed = []
    for head in only or work.old.ids():
        try:
            _refit_one(work, head)
        except (WinnowError, OSError) as error:
            work.maker.say(f"{head}: stays in its encoder group: {error}")
            failed.append(head)
    return failed


def _refit_one(work: Refit, head: str) -> None:
    current = work.old.record(head)
    if current.moved_to:
        work.maker.say(f"{head}: was moved to {current.moved_to} before")
        return
    before = work.old.manifest(head, current.version)
    if not _is_there(work, before):
        _train_again(work, before)
    work.old.move(head, work.group)
    work.maker.say(f"{head}: moved to {work.group}")


def _is_there(work: Refit, before: HeadManifest) -> bool:
    """Returns whether an earlier refit published this head, and was interrupted before it was
    moved.
    """
    try:
        there = work.new.manifest(before.id, work.new.record(before.id).version)
    except NotFoundError:
        return False
    return there.provenance.get(REFIT_OF) == before.checksum


def _train_again(work: Refit, before: HeadManifest) -> None:
    job = recorded_job(before, work.directories)
    version = max(work.new.versions(before.id), default=0) + 1
    naming = HeadNaming(
        id=before.id,
        tenant=before.tenant,
        version=version,
        licences=before.licences,
        refit_of=before.checksum,
    )
    with TemporaryDirectory() as directory:
        place = Path(directory) / "head"
        made = make_head(job, naming, work.maker, place)
        name, old, new = comparable(before, made)
        work.maker.say(f"{before.id}: {name} {old:.2f} % before, {new:.2f} % now")
        if old - new > work.worse:
            raise TrainingError(
                f"it lost {old - new:.2f} points of {name}, more than {work.worse:g}: train it by "
                "hand, or allow more with --worse"
            )
        work.new.publish(place)
