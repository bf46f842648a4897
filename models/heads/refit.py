"""Retrains the heads of one encoder for another encoder, one by one.

The old store continues to serve. A head moves after its new version, which must be about as
accurate as the old one, is published. A head whose training fails stays, and the reason is printed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from models.heads.making import HeadMaker, make_head
from models.heads.measuring import compare_versions
from models.heads.record import REFIT_OF, HeadNaming, recorded_job
from models.training.loop import TrainingError
from winnow.errors import IdentityError, NotFoundError, WinnowError
from winnow.heads.manifest import HeadManifest
from winnow.heads.store import HeadStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitPlan:
    """Stores and settings of a refit."""

    old: HeadStore
    new: HeadStore
    group: str
    """Name of the encoder group of the new encoder."""
    max_accuracy_loss: float
    """Points of accuracy that a head may lose."""
    directories: Sequence[Path]
    """Directories to search for training data that has moved."""
    maker: HeadMaker


def refit(plan: RefitPlan, head_ids: Sequence[str]) -> list[str]:
    """Refits the heads `head_ids` of the old store, or all heads if `head_ids` is empty.

    Returns the ids of failed heads. Skips heads that have moved, so an interrupted refit can be
    resumed.

    Raises:
        IdentityError: the heads of the old store already belong to this encoder.

    """
    encoder, bundle = plan.old.encoder(), plan.maker.bundle
    if encoder and encoder.fingerprint == bundle.manifest.states_fingerprint:
        raise IdentityError(
            f"the heads of {plan.old.name} are already made for the encoder of {bundle.directory}: "
            "name the bundle of the new encoder"
        )
    failed = []
    for head_id in head_ids or plan.old.ids():
        try:
            _refit_head(plan, head_id)
        except (WinnowError, OSError) as error:
            plan.maker.report(f"{head_id}: stays in its encoder group: {error}")
            failed.append(head_id)
    return failed


def _refit_head(plan: RefitPlan, head_id: str) -> None:
    current = plan.old.read_record(head_id)
    if current.moved_to:
        plan.maker.report(f"{head_id}: already moved to {current.moved_to}")
        return
    before = plan.old.manifest(head_id, current.version)
    if not _is_published(plan, before):
        _retrain(plan, before)
    plan.old.move(head_id, plan.group)
    plan.maker.report(f"{head_id}: moved to {plan.group}")


def _is_published(plan: RefitPlan, before: HeadManifest) -> bool:
    """Returns whether an interrupted refit has published the new version of this head."""
    try:
        published = plan.new.manifest(before.id, plan.new.read_record(before.id).version)
    except NotFoundError:
        return False
    return published.provenance.get(REFIT_OF) == before.checksum


def _retrain(plan: RefitPlan, before: HeadManifest) -> None:
    job = recorded_job(before, plan.directories)
    version = max(plan.new.versions(before.id), default=0) + 1
    naming = HeadNaming(
        id=before.id,
        tenant=before.tenant,
        version=version,
        licences=before.licences,
        refit_of=before.checksum,
    )
    with TemporaryDirectory() as directory:
        target = Path(directory) / "head"
        retrained = make_head(job, naming, plan.maker, target)
        name, old, new = compare_versions(before, retrained)
        plan.maker.report(f"{before.id}: {name} {old:.2f} % before, {new:.2f} % now")
        if old - new > plan.max_accuracy_loss:
            raise TrainingError(
                f"the new version lost {old - new:.2f} points of {name}, more than "
                f"{plan.max_accuracy_loss:g}: train the head by hand, or allow more with --worse"
            )
        plan.new.publish(target)
