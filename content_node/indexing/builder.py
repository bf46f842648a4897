"""Builds an index from a file of passages: stage, encode, count words, write shards, rename.

After an interruption at any moment the same command resumes the build.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.engine import Engine, LocalEngine
from winnow.content_node.indexing.faults import named_faults
from winnow.content_node.indexing.intake import check_source, take_in
from winnow.content_node.indexing.plan import BuildListener, BuildPlan
from winnow.content_node.indexing.recut import at_rest, fingerprint, is_index
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.indexing.workspace import Fate, Workspace, open_workspace, staging_of
from winnow.content_node.shard.manifest import FORMAT, IndexManifest, write_manifest
from winnow.content_node.shard.writing import ShardSetIdentity, write_shard
from winnow.domain.shard import INDEX_FILE
from winnow.domain.word_counts import WordCounts
from winnow.errors import ArtefactError
from winnow.files.opened import sha256
from winnow.passages.encoding import SPECIAL

_COUNTED = 1_000
"""Passages between two reports of counting."""
_FLAGS = {
    "source": "--passages",
    "shards": "--shards",
    "encoding": "--bundle",
    "skip_bad_rows": "--skip-bad-rows",
    "documents": "--cut",
}
"""The flag for each part of a plan."""


def build_index(
    plan: BuildPlan, bundle: Bundle, progress: BuildListener, engine: Engine | None = None
) -> IndexManifest:
    """Builds the index and renames it into place; `engine` encodes, by default threads.

    Raises:
        BadRowsError: the source has bad rows and they are not to be skipped.
        ArtefactError: the source cannot be read or is empty, the target exists or cannot be
            written, or the partial directory beside it belongs to another build.
        WinnowError: the engine failed.

    """
    engine = engine or LocalEngine(plan.threads)
    with named_faults(plan.source, staging_of(plan.target)):
        check_source(plan)
        with open_workspace(plan.target, progress.kept) as place:
            return _build(place, plan, bundle, progress, engine)


def _build(
    place: Workspace, plan: BuildPlan, bundle: Bundle, progress: BuildListener, engine: Engine
) -> IndexManifest:
    with contextlib.closing(Staging(place.staging)) as staging:
        frozen = at_rest(plan.source) if is_index(plan.source) else contextlib.nullcontext()
        with frozen:
            wanted = _wanted(plan, bundle)
            if not _is_staged(staging, wanted, place.directory):
                place.fate = Fate.REMOVE
                take_in(staging, plan, bundle, wanted, progress)
        place.fate = Fate.KEEP
        engine.encode(staging, bundle, progress)
        manifest = _manifest(staging, plan, bundle)
        words = _count(staging, progress)
    partial = place.index
    partial.mkdir(exist_ok=True)
    shards = _publish(staging.path, partial, manifest, words, plan, progress)
    manifest = write_manifest(
        partial / INDEX_FILE, manifest.model_copy(update={"manifests": shards})
    )
    place.publish()
    return manifest


def _wanted(plan: BuildPlan, bundle: Bundle) -> dict[str, object]:
    """The parts of the plan that must be the same when a build is resumed."""
    source = plan.source
    return {
        "source": fingerprint(source) if is_index(source) else sha256(source),
        "shards": plan.shards,
        "encoding": bundle.manifest.encoding_fingerprint,
        "skip_bad_rows": plan.skip_bad_rows,
        "documents": plan.documents or None,  # older versions wrote nothing for False
    }


def _is_staged(staging: Staging, wanted: dict[str, object], directory: Path) -> bool:
    if not staging.get("staged"):
        return False
    found = staging.get("plan")
    differing = [
        flag
        for key, flag in _FLAGS.items()
        if not isinstance(found, dict) or found.get(key) != wanted[key]
    ]
    if differing:
        raise ArtefactError(
            f"{directory} was begun with another {', '.join(differing)}: give the same to resume, "
            "or remove it to start again"
        )
    return True


def _manifest(staging: Staging, plan: BuildPlan, bundle: Bundle) -> IndexManifest:
    entry = bundle.manifest.encoder
    return IndexManifest(
        format=FORMAT,
        index_id=str(staging.get("index_id")),
        shards=plan.shards,
        passages=staging.counts()[0],
        dimension=entry.dimension,
        bundle_name=bundle.manifest.name,
        encoding_fingerprint=bundle.manifest.encoding_fingerprint,
        source=str(staging.get("source")),
        bad_rows=int(str(staging.get("bad_rows"))),
        truncated_passages=staging.longer_than(entry.max_passage_tokens - SPECIAL),
    )


def _count(staging: Staging, progress: BuildListener) -> WordCounts:
    progress.start("counting words", staging.counts()[0])

    def counted() -> Iterator[NDArray[np.uint32]]:
        number = 0
        for number, tokens in enumerate(staging.words(), start=1):
            if number % _COUNTED == 0:
                progress.advance(_COUNTED)
            yield tokens
        progress.advance(number % _COUNTED)

    return count_words(counted())


def _publish(
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
    )
    progress.start("writing shards", plan.shards)
    for leftover in partial.glob("shard-*"):
        shutil.rmtree(leftover)
    checksums = []
    for shard in range(plan.shards):
        checksums.append(write_shard(staging, partial, shard, identity, plan.graph).checksum)
        progress.advance(1)
    return tuple(checksums)
