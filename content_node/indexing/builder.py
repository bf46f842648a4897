"""Builds an index from passages: stage, encode, count words, write shards, rename.

After an interruption at any moment the same command resumes the build.
"""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.engine import Engine, LocalEngine
from winnow.content_node.indexing.faults import convert_errors
from winnow.content_node.indexing.plan import BuildListener, BuildPlan
from winnow.content_node.indexing.source_index import is_index, lock_writes, source_fingerprint
from winnow.content_node.indexing.stage_source import (
    check_source,
    record_staged,
    report_skipped_files,
    stage_passages,
)
from winnow.content_node.indexing.staged_tokens import (
    store_missing_tokens,
    write_token_vectors,
)
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.indexing.workspace import (
    OnFailure,
    Workspace,
    open_workspace,
    staging_path,
)
from winnow.content_node.shard.hnsw import check_graphless
from winnow.content_node.shard.manifest import FORMAT, IndexManifest, write_manifest
from winnow.content_node.shard.writing import ShardSetIdentity, write_shard
from winnow.domain.shard import INDEX_FILE
from winnow.domain.word_counts import WordCounts
from winnow.errors import ArtefactError
from winnow.files.opened import sha256
from winnow.passages.encoding import SPECIAL

_PROGRESS_STEP = 1_000
"""Number of passages that are counted between two reports of progress."""
_FLAGS = {
    "source": "--passages or --documents",
    "shards": "--shards",
    "encoding": "--bundle",
    "skip_bad_rows": "--skip-bad-rows",
    "documents": "--cut",
    "tenants": "--tenants",
}
"""The command-line flag of each value that must be the same when a build is resumed."""


def build_index(
    plan: BuildPlan, bundle: Bundle, progress: BuildListener, engine: Engine | None = None
) -> IndexManifest:
    """Builds an index and renames it into place. Without an `engine`, threads encode passages.

    Raises:
        BadRowsError: the source has bad rows, and the plan does not skip them.
        ArtefactError: the source cannot be read or is empty, the target exists or cannot be
            written, or the partial directory beside it belongs to another build.
        WinnowError: the engine failed.

    """
    engine = engine or LocalEngine(plan.threads)
    with convert_errors(plan.source, staging_path(plan.target)):
        check_source(plan)
        with open_workspace(plan.target, progress.workspace_kept) as workspace:
            return _build_index(workspace, plan, bundle, progress, engine)


def build_empty_index(
    target: Path,
    bundle: Bundle,
    shards: int,
    progress: BuildListener,
    *,
    tenants: bool = False,
) -> IndexManifest:
    """Builds an index without passages, whose nodes take writes. `tenants`: whether it has tenants.

    Raises ArtefactError if the target exists or cannot be written.
    """
    plan = BuildPlan(source=Path(), target=target, threads=1, shards=shards)
    with (
        convert_errors(plan.source, staging_path(target)),
        open_workspace(target, progress.workspace_kept) as workspace,
        contextlib.closing(Staging(workspace.staging)) as staging,
    ):
        record_staged(staging, shards, tenants=tenants)
        return _write_index(workspace, staging, plan, bundle, progress)


def _build_index(
    workspace: Workspace, plan: BuildPlan, bundle: Bundle, progress: BuildListener, engine: Engine
) -> IndexManifest:
    with contextlib.closing(Staging(workspace.staging)) as staging:
        copies_index = plan.documents is None and is_index(plan.source)
        locked = lock_writes(plan.source) if copies_index else contextlib.nullcontext()
        with locked:
            resume_key = _resume_key(plan, bundle)
            if not _is_staged(staging, resume_key, workspace):
                kept = staging.has_kept_vectors
                workspace.on_failure = OnFailure.KEEP if kept else OnFailure.REMOVE
                stage_passages(staging, plan, bundle, resume_key, progress)
            else:
                report_skipped_files(staging, progress)
        workspace.on_failure = OnFailure.KEEP
        check_graphless(
            "the largest shard", staging.count_largest_shard(), "make smaller shards: --shards N"
        )
        staging.expect_token_vectors(bundle.manifest.token_vectors_fingerprint)
        engine.encode(staging, bundle, progress)
        if bundle.manifest.late_interaction is not None:
            store_missing_tokens(staging, bundle, plan.threads, progress)
        return _write_index(workspace, staging, plan, bundle, progress)


def _write_index(
    workspace: Workspace, staging: Staging, plan: BuildPlan, bundle: Bundle, progress: BuildListener
) -> IndexManifest:
    """Writes the shards of encoded passages, and renames the index into place."""
    manifest = _index_manifest(staging, plan, bundle)
    words = _count_words(staging, progress)
    partial = workspace.index
    partial.mkdir(exist_ok=True)
    checksums = _write_shards(staging.path, partial, manifest, words, plan, progress)
    if bundle.manifest.late_interaction is not None:
        shards = manifest.shards
        write_token_vectors(staging.path, partial, shards, bundle, progress, plan.threads)
    manifest = write_manifest(
        partial / INDEX_FILE, manifest.model_copy(update={"manifests": checksums})
    )
    workspace.publish()
    return manifest


def _resume_key(plan: BuildPlan, bundle: Bundle) -> dict[str, object]:
    """Returns the values that must be the same when a build is resumed."""
    return {
        "source": _source_key(plan),
        "shards": plan.shards,
        "encoding": bundle.manifest.encoding_fingerprint,
        "skip_bad_rows": plan.skip_bad_rows,
        "documents": plan.cut_documents or None,  # older versions wrote nothing for False
        "tenants": plan.tenants or None,
        "folder": None if plan.documents is None else str(plan.source.resolve()),
    }


def _source_key(plan: BuildPlan) -> str:
    """Returns a checksum of the content of the source."""
    if plan.documents is not None:
        return plan.documents.folder.fingerprint
    return source_fingerprint(plan.source) if is_index(plan.source) else sha256(plan.source)


def _is_staged(staging: Staging, resume_key: dict[str, object], workspace: Workspace) -> bool:
    """Whether all passages are staged; raises ArtefactError if another build staged them.

    Passages of a folder that has changed since are not. They are staged again with their vectors.
    """
    if not staging.get("staged"):
        return False
    staged_key = staging.get("plan")
    if isinstance(staged_key, dict) and _folder_has_changed(staged_key, resume_key):
        staging.keep_vectors()
        staging.record(staged=False)
        return False
    differing = [
        flag
        for key, flag in _FLAGS.items()
        if not isinstance(staged_key, dict) or staged_key.get(key) != resume_key[key]
    ]
    chosen = resume_key["shards"]
    if differing == [_FLAGS["shards"]] and chosen is not None and not workspace.index.exists():
        # a build may have been refused for too large shards: only the division is repeated
        shards = int(str(chosen))
        staging.partition(shards)
        staging.record(plan=resume_key, shards=shards)
        return True
    if differing:
        raise ArtefactError(
            f"{workspace.directory} belongs to a build with another {', '.join(differing)}: use "
            "the same value to resume, or remove the directory to start again"
        )
    return True


def _folder_has_changed(staged_key: Mapping[str, object], resume_key: Mapping[str, object]) -> bool:
    """Whether the builds differ only in the content of a folder of documents."""
    folder = resume_key["folder"]
    same = {**resume_key, "source": staged_key.get("source")} == {
        "folder": None,
        "tenants": None,
        **staged_key,
    }
    return folder is not None and same and staged_key.get("source") != resume_key["source"]


def _index_manifest(staging: Staging, plan: BuildPlan, bundle: Bundle) -> IndexManifest:
    entry = bundle.manifest.encoder
    return IndexManifest(
        format=FORMAT,
        index_id=str(staging.get("index_id")),
        shards=int(str(staging.get("shards") or plan.shards)),
        passages=staging.counts()[0],
        dimension=entry.dimension,
        bundle_name=bundle.manifest.name,
        encoding_fingerprint=bundle.manifest.encoding_fingerprint,
        source=str(staging.get("source")),
        bad_rows=int(str(staging.get("bad_rows"))),
        tenants=True if staging.get("tenants") else None,
        truncated_passages=staging.count_longer_than(entry.max_passage_tokens - SPECIAL),
    )


def _count_words(staging: Staging, progress: BuildListener) -> WordCounts:
    progress.start("counting words", staging.counts()[0])

    def tokens_with_progress() -> Iterator[NDArray[np.uint32]]:
        number = 0
        for number, tokens in enumerate(staging.passage_tokens(), start=1):
            if number % _PROGRESS_STEP == 0:
                progress.advance(_PROGRESS_STEP)
            yield tokens
        progress.advance(number % _PROGRESS_STEP)

    return count_words(tokens_with_progress())


def _write_shards(
    staging: Path,
    partial: Path,
    manifest: IndexManifest,
    words: WordCounts,
    plan: BuildPlan,
    progress: BuildListener,
) -> tuple[str, ...]:
    """Writes every shard; returns the checksums of their manifests."""
    identity = ShardSetIdentity(
        index_id=manifest.index_id,
        shards=manifest.shards,
        dimension=manifest.dimension,
        bundle_name=manifest.bundle_name,
        encoding_fingerprint=manifest.encoding_fingerprint,
        passages=manifest.passages,
        words=words,
        tenants=manifest.tenants is True,
    )
    progress.start("writing shards", manifest.shards)
    for leftover in partial.glob("shard-*"):
        shutil.rmtree(leftover)
    checksums = []
    for shard in range(manifest.shards):
        checksums.append(write_shard(staging, partial, shard, identity, plan.graph).checksum)
        progress.advance(1)
    return tuple(checksums)
