"""Adds late interaction to a bundle, as a new bundle with the same encoder."""

import json
import shutil
from pathlib import Path

from models.assemble import file_entries, write_manifest
from models.data import DataError
from models.network.late_export import late_interaction_nodes
from models.network.late_interaction import LateInteraction
from winnow.bundle import Bundle, Manifest, load_bundle, read_manifest
from winnow.bundle.manifest import FILE, FORMAT_LATE

LATE_INTERACTION = "late-interaction.onnx"


def choose_projection(projections: list[LateInteraction], name: str) -> LateInteraction:
    """Returns the projection with a name such as `layers 4+6, 32 values`; raises DataError."""
    for each in projections:
        if each.name == name:
            return each
    names = "; ".join(each.name for each in projections)
    raise DataError(f"there is no projection {name!r}: choose one of {names}")


def add_late_interaction(
    source: Path, target: Path, projection: LateInteraction, version: str
) -> Manifest:
    """Copies the bundle `source` to the new directory `target`, with late interaction.

    Indexes and heads of `source` stay valid. Late interaction has no weight before
    `models.steps.calibration` fits it.

    Raises:
        DataError: the encoders of the bundle are not one file, or `target` exists.

    """
    bundle = load_bundle(source)
    _check(bundle, target)
    shutil.copytree(source, target)
    nodes = late_interaction_nodes(bundle.passage_encoder, projection)
    (target / LATE_INTERACTION).write_bytes(nodes)
    content = json.loads((target / FILE).read_text(encoding="utf-8"))
    entry = {
        "file": LATE_INTERACTION,
        "values": projection.project.out_features,
        "words": bundle.manifest.retrieval.words,
        "tokens": 0.0,
    }
    files = {**content["files"], **file_entries(target, [LATE_INTERACTION])}
    changed = {"format": FORMAT_LATE, "version": version, "late_interaction": entry, "files": files}
    write_manifest(target, {**content, **changed})
    return read_manifest(target)


def _check(bundle: Bundle, target: Path) -> None:
    if bundle.question_encoder != bundle.passage_encoder:
        raise DataError(
            f"{bundle.directory} has separate encoders of questions and passages: late interaction "
            "needs a bundle with one encoder for both"
        )
    if target.exists():
        raise DataError(f"{target} exists: choose another directory")
