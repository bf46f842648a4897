"""Checks an index: its shards as built, their newest generations, logs and precomputed data."""

from dataclasses import dataclass, replace
from pathlib import Path

from winnow.content_node.indexing.contents import GenerationFindings, GraphTarget, check_contents
from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.indexing.verify_writes import check_writes
from winnow.content_node.shard.built_files import is_emptied
from winnow.content_node.shard.manifest import (
    IndexManifest,
    ShardManifest,
    read_index_manifest,
    read_shard_manifest,
)
from winnow.content_node.states.checking import states_fault
from winnow.content_node.states.manifest import STATES_FILE
from winnow.domain.shard import shard_name, shard_number_of
from winnow.errors import WinnowError
from winnow.index_directory import present_shards
from winnow.quoting import many
from winnow.reading.states_kind import KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReport:
    """The result of checking one shard."""

    shard: int
    passages: int
    """Number of passages once all writes are applied."""
    recall: float
    """The recall of the newest graph."""
    faults: tuple[str, ...]
    """Descriptions of the faults; empty for a valid shard."""
    sequence: int = 0
    """The number of the last write; 0 if there was none."""
    unmerged: int = 0
    """Number of writes that the newest generation lacks."""
    states: bool = False
    """Whether the shard has precomputed states."""
    states_of: str = ""
    """The fingerprint of the reader of the states; empty without usable states."""


def verify_index(directory: Path, sample: int, min_recall: float) -> list[ShardReport]:
    """Checks every shard, while nodes may write to it; searches for `sample` vectors in each.

    Raises:
        ArtefactError: the index manifest is missing or damaged.

    """
    index, target = read_index_manifest(directory), GraphTarget(sample, min_recall)
    shards = present_shards(directory, index.shards)
    reports = [_check_built(each, index, target) for each in shards]
    total = sum(report.passages for report in reports)
    is_split = len(shards) > index.shards  # halves have the merged writes of their shard
    if total != index.passages and not is_split and not any(each.faults for each in reports):
        fault = (
            f"the shards hold {many(total, 'passage')}, but the index manifest says "
            f"{index.passages}"
        )
        reports[0] = replace(reports[0], faults=(fault,))
    reports = [
        _add_writes(report, shard, target) for report, shard in zip(reports, shards, strict=True)
    ]
    return [_add_states(report, shard) for report, shard in zip(reports, shards, strict=True)]


def _check_built(directory: Path, index: IndexManifest, target: GraphTarget) -> ShardReport:
    """Checks a shard as it was built, or as it was split from another one, without its writes."""
    shard = shard_number_of(directory.name) or 0
    try:
        manifest = read_shard_manifest(directory)
        findings = _check_built_files(directory, manifest, target)
    except Exception as error:  # noqa: BLE001 (even files with right checksums may be nonsense)
        return ShardReport(shard=shard, passages=0, recall=0.0, faults=(_describe_error(error),))
    return ShardReport(
        shard=shard,
        passages=manifest.passages,
        recall=findings.recall,
        faults=(*identity_faults(manifest, directory, index), *findings.faults),
    )


def _check_built_files(
    directory: Path, manifest: ShardManifest, target: GraphTarget
) -> GenerationFindings:
    """Checks the files of a built shard, unless a merge has removed them, or does so meanwhile."""
    removed = GenerationFindings(recall=1.0, faults=())
    if is_emptied(directory, manifest):
        return removed
    try:
        findings = check_contents(directory, manifest, target)
    except Exception:
        if not is_emptied(directory, manifest):
            raise
        return removed
    return removed if is_emptied(directory, manifest) else findings


def _add_writes(report: ShardReport, directory: Path, target: GraphTarget) -> ShardReport:
    """Checks the newest generation and the log; returns the report with the result."""
    try:
        findings = check_writes(directory, target)
    except Exception as error:  # noqa: BLE001 (even files with right checksums may be nonsense)
        return _add_fault(report, _describe_error(error))
    if findings is None:
        return report
    return replace(
        report,
        passages=findings.passages,
        recall=report.recall if findings.recall is None else findings.recall,
        faults=(*report.faults, *findings.faults),
        sequence=findings.sequence,
        unmerged=findings.unmerged,
    )


def _add_states(report: ShardReport, directory: Path) -> ShardReport:
    """Checks the precomputed data of the newest generation; returns the report with the result."""
    try:
        shard = read_current_shard(directory)
        base = shard.base
        faults = [fault for kind in KINDS if (fault := states_fault(base, kind))]
    except Exception:  # noqa: BLE001 (reported already, or a merge has just removed the base)
        return report
    report = replace(
        report,
        states=(base / STATES_FILE).exists(),
        states_of=shard.states.fingerprint if shard.states else "",
    )
    for fault in faults:
        report = _add_fault(report, fault if base == directory else f"{base.name}: {fault}")
    return report


def _add_fault(report: ShardReport, fault: str) -> ShardReport:
    # without duplicates: the check of writes finds a damaged built shard, too
    return replace(report, faults=tuple(dict.fromkeys((*report.faults, fault))))


def _describe_error(error: Exception) -> str:
    return str(error) if isinstance(error, WinnowError) else f"it cannot be read: {error!r}"


def identity_faults(manifest: ShardManifest, directory: Path, index: IndexManifest) -> list[str]:
    """Returns the reasons why a manifest is not that of the shard whose directory this is."""
    faults, shard = [], manifest.shard
    if directory.name != shard_name(shard, index.shards) or manifest.shards != index.shards:
        faults.append(f"its manifest is of shard {manifest.shard} of {manifest.shards}")
    if manifest.index_id != index.index_id:
        faults.append(f"it belongs to index {manifest.index_id}, not {index.index_id}")
    if manifest.encoding_fingerprint != index.encoding_fingerprint:
        faults.append(
            f"it was encoded by {manifest.encoding_fingerprint}, not {index.encoding_fingerprint}"
        )
    if manifest.tenants != index.tenants:
        faults.append("one of shard and index has tenants, and the other has none")
    built = index.manifests[shard:] if index.manifests else ()  # empty for a half
    if not faults and built and manifest.checksum != built[0]:
        faults.append("it is not the shard that was built for the index: copy that shard again")
    return faults
