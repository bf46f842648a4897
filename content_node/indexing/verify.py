"""Checks an index: its shards as they were built, their newest generations, and their logs.

Returns faults, and leaves exit codes to the command line.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from winnow.content_node.indexing.contents import GraphTarget, check_contents
from winnow.content_node.indexing.verify_writes import check_writes
from winnow.content_node.indexing.written import written
from winnow.content_node.shard.manifest import (
    IndexManifest,
    ShardManifest,
    read_index_manifest,
    read_shard_manifest,
)
from winnow.content_node.states.checking import states_fault
from winnow.content_node.states.manifest import STATES_FILE
from winnow.domain.shard import shard_name
from winnow.errors import WinnowError
from winnow.quoting import many


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReport:
    """The findings in one shard."""

    shard: int
    passages: int
    recall: float
    """The recall of the newest graph."""
    faults: tuple[str, ...]
    sequence: int = 0
    """The number of the last write; 0 if there was none."""
    unmerged: int = 0
    """The number of writes that only the log has."""
    states: bool = False
    """Whether there were precomputed states to check."""
    states_of: str = ""
    """The fingerprint of their reader; empty if they cannot be used."""


def verify_index(directory: Path, sample: int, min_recall: float) -> list[ShardReport]:
    """Checks every shard; a node may write to it. `sample` vectors of each are searched for.

    Raises:
        ArtefactError: there is no readable index manifest.

    """
    index, asked = read_index_manifest(directory), GraphTarget(sample, min_recall)
    shards = [directory / shard_name(shard, index.shards) for shard in range(index.shards)]
    reports = [_verify_built(place, shard, index, asked) for shard, place in enumerate(shards)]
    total = sum(report.passages for report in reports)
    if total != index.passages and not any(report.faults for report in reports):
        fault = (
            f"the shards hold {many(total, 'passage')}, the index manifest says {index.passages}"
        )
        reports[0] = replace(reports[0], faults=(fault,))
    reports = [
        _with_writes(each, place, asked) for each, place in zip(reports, shards, strict=True)
    ]
    return [_with_states(each, place) for each, place in zip(reports, shards, strict=True)]


def _verify_built(
    directory: Path, shard: int, index: IndexManifest, asked: GraphTarget
) -> ShardReport:
    try:
        manifest = read_shard_manifest(directory)
        found = check_contents(directory, manifest, asked)
    except Exception as error:  # noqa: BLE001 (a checksum can be made for any nonsense)
        return ShardReport(shard=shard, passages=0, recall=0.0, faults=(_named(error),))
    return ShardReport(
        shard=shard,
        passages=manifest.passages,
        recall=found.recall,
        faults=(*identity_faults(manifest, shard, index), *found.faults),
    )


def _with_writes(built: ShardReport, directory: Path, asked: GraphTarget) -> ShardReport:
    """Adds the findings in the newest generation and in the log."""
    try:
        found = check_writes(directory, asked)
    except Exception as error:  # noqa: BLE001 (as above)
        return _with_fault(built, _named(error))
    if found is None:
        return built
    return replace(
        built,
        passages=found.passages,
        recall=built.recall if found.recall is None else found.recall,
        faults=(*built.faults, *found.faults),
        sequence=found.sequence,
        unmerged=found.unmerged,
    )


def _with_states(found: ShardReport, directory: Path) -> ShardReport:
    """Adds the findings in the precomputed states beside the newest generation."""
    try:
        now = written(directory)
        base, fault = now.base, states_fault(now.base)
    except Exception:  # noqa: BLE001 (it is a fault already, or a merge has just removed the base)
        return found
    there = (base / STATES_FILE).exists()
    found = replace(found, states=there, states_of=now.states.fingerprint if now.states else "")
    if not fault:
        return found
    return _with_fault(found, fault if base == directory else f"{base.name}: {fault}")


def _with_fault(built: ShardReport, fault: str) -> ShardReport:
    # a damaged base is found once more with the writes
    return replace(built, faults=tuple(dict.fromkeys((*built.faults, fault))))


def _named(error: Exception) -> str:
    return str(error) if isinstance(error, WinnowError) else f"it cannot be read: {error!r}"


def identity_faults(manifest: ShardManifest, shard: int, index: IndexManifest) -> list[str]:
    """The reasons why this is not that shard of the index."""
    faults = []
    if (manifest.shard, manifest.shards) != (shard, index.shards):
        faults.append(f"it calls itself shard {manifest.shard} of {manifest.shards}")
    if manifest.index_id != index.index_id:
        faults.append(f"it belongs to index {manifest.index_id}, not {index.index_id}")
    if manifest.encoding_fingerprint != index.encoding_fingerprint:
        faults.append(f"it was encoded by {manifest.encoding_fingerprint}")
    if not faults and index.manifests and manifest.checksum != index.manifests[shard]:
        faults.append("it is not the shard that the index was built with: copy that one again")
    return faults
