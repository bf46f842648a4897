"""An index from a file of passages: stage, encode, count, publish, rename.

Interrupted at any moment, the same command goes on where it was.
"""

import itertools
import shutil
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from content_node.indexing.counting import WordCounts, count_words
from content_node.indexing.encode import PassageEncoder, encode_pending
from content_node.indexing.recut import is_index, stores
from content_node.indexing.rows import BadRow, Row, read_rows
from content_node.indexing.staging import Staging
from content_node.shard.manifest import FORMAT, IndexManifest, read_index_manifest, write
from content_node.shard.writing import GraphPlan, Identity, publish_shard, sync_directory
from winnow.bundle import Bundle
from winnow.checksum import sha256
from winnow.domain.layout import INDEX_FILE, shard_of
from winnow.errors import ArtefactError
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.runtime import InferenceOptions
from winnow.text.tokenizer import Tokenizer

_BATCH = 512
_SPECIAL = 3


class Progress(Protocol):
    """Told how a build goes on."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """A stage begins, with so many steps, some of them done in an earlier run."""

    def advance(self, steps: int) -> None:
        """Steps of the present stage are done."""

    def bad_row(self, row: BadRow) -> None:
        """A row was not a passage."""


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """What to build."""

    source: Path
    target: Path
    shards: int
    threads: int
    skip_bad_rows: bool = False
    graph: GraphPlan = field(default_factory=GraphPlan)


class BadRowsError(ArtefactError):
    """The source has rows that are no passages."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} bad rows: mend them, or leave them out with --skip-bad-rows")
        self.count = count


def build_index(plan: BuildPlan, bundle: Bundle, progress: Progress) -> IndexManifest:
    """Builds the index and renames it into place.

    Raises:
        BadRowsError: the source has bad rows and they are not to be skipped.
        ArtefactError: the source cannot be read, is empty, the target exists, or the partial
            directory beside it belongs to another build.

    """
    partial = _partial(plan.target)
    staging = _open_staging(plan, bundle, partial)
    try:
        if staging.get("staged") is None:
            stage = _take_over if is_index(plan.source) else _stage
            stage(staging, plan, bundle, progress)
        _encode(staging, plan, bundle, progress)
        manifest = _manifest(staging, plan, bundle)
        words = _count(staging, progress)
    finally:
        staging.close()
    shards = _publish(staging.path, partial, manifest, words, plan, progress)
    manifest = write(partial / INDEX_FILE, manifest.model_copy(update={"manifests": shards}))
    for leftover in partial.glob("staging.sqlite*"):
        leftover.unlink()
    sync_directory(partial)
    partial.rename(plan.target)
    sync_directory(plan.target.parent)
    return manifest


def _partial(target: Path) -> Path:
    if target.exists():
        raise ArtefactError(f"{target} exists already: remove it, or choose another --out")
    partial = target.with_name(target.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    return partial


def _open_staging(plan: BuildPlan, bundle: Bundle, partial: Path) -> Staging:
    file = plan.source / INDEX_FILE if is_index(plan.source) else plan.source
    if not file.is_file():
        raise ArtefactError(f"no file {plan.source}, and no index: give one with --passages")
    wanted = {
        "source": sha256(file),
        "shards": plan.shards,
        "encoding": bundle.manifest.encoding_fingerprint,
        "skip_bad_rows": plan.skip_bad_rows,
    }
    staging = Staging(partial / "staging.sqlite")
    found = staging.get("plan")
    if found is None:
        staging.note("plan", wanted)
        staging.note("index_id", uuid.uuid4().hex[:16])
    elif found != wanted:
        staging.close()
        differing = [key for key in wanted if dict(found).get(key) != wanted[key]]  # type: ignore[call-overload]
        raise ArtefactError(
            f"{partial} was begun with another {', '.join(differing)}: remove it to begin anew"
        )
    return staging


def _stage(staging: Staging, plan: BuildPlan, bundle: Bundle, progress: Progress) -> None:
    staging.clear()
    tokenizer = Tokenizer(bundle.tokenizer)
    progress.start("reading passages", None)
    bad = 0
    for batch in _batches(read_rows(plan.source)):
        faults = [row for row in batch if isinstance(row, BadRow)]
        faults += _add(staging, [row for row in batch if isinstance(row, Row)], tokenizer, plan)
        for fault in sorted(faults, key=lambda row: row.line):
            progress.bad_row(fault)
        bad += len(faults)
        progress.advance(len(batch))
    if bad and not plan.skip_bad_rows:
        raise BadRowsError(bad)
    if staging.counts()[0] == 0:
        raise ArtefactError(f"{plan.source} has no passages")
    staging.note("bad_rows", bad)
    staging.note("staged", value=True)


def _take_over(staging: Staging, plan: BuildPlan, bundle: Bundle, progress: Progress) -> None:
    staging.clear()
    found = stores(plan.source, bundle.manifest)
    index = read_index_manifest(plan.source)
    progress.start("taking over passages", index.passages)
    for store in found:
        staging.copy(store, lambda name: shard_of(name, plan.shards), progress.advance)
    staging.note("source", index.source)
    staging.note("bad_rows", index.bad_rows)
    staging.note("staged", value=True)


def _add(
    staging: Staging, rows: list[Row], tokenizer: Tokenizer, plan: BuildPlan
) -> Iterator[BadRow]:
    titles = tokenizer.tokenise_many([row.passage.title for row in rows])
    texts = tokenizer.tokenise_many([row.passage.text for row in rows])
    for row, title, text in zip(rows, titles, texts, strict=True):
        shard = shard_of(row.passage.id, plan.shards)
        if not staging.add(row, title, text, shard):
            yield BadRow(row.line, f"duplicate id {row.passage.id}")


def _encode(staging: Staging, plan: BuildPlan, bundle: Bundle, progress: Progress) -> None:
    total, done = staging.counts()
    progress.start("encoding passages", total, done)
    special = Tokenizer(bundle.tokenizer).special
    model = open_passage_encoder(bundle, special, InferenceOptions(runs=plan.threads))
    encoder = PassageEncoder(model, bundle.manifest.encoder)
    encode_pending(staging, encoder, plan.threads, progress.advance)


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
        source=str(staging.get("source") or plan.source.name),
        bad_rows=int(str(staging.get("bad_rows"))),
        truncated_passages=staging.longer_than(entry.max_passage_tokens - _SPECIAL),
    )


def _count(staging: Staging, progress: Progress) -> WordCounts:
    progress.start("counting words", staging.counts()[0])

    def counted() -> Iterator[NDArray[np.uint32]]:
        for tokens in staging.words():
            progress.advance(1)
            yield tokens

    return count_words(counted())


def _publish(
    staging: Path,
    partial: Path,
    manifest: IndexManifest,
    words: WordCounts,
    plan: BuildPlan,
    progress: Progress,
) -> tuple[str, ...]:
    """Writes every shard; the checksums of their manifests."""
    identity = Identity(
        manifest.index_id,
        manifest.shards,
        manifest.dimension,
        manifest.bundle_name,
        manifest.encoding_fingerprint,
        manifest.passages,
        words,
    )
    progress.start("writing shards", plan.shards)
    for leftover in partial.glob("shard-*"):
        shutil.rmtree(leftover)
    checksums = []
    for shard in range(plan.shards):
        checksums.append(publish_shard(staging, partial, shard, identity, plan.graph).checksum)
        progress.advance(1)
    return tuple(checksums)


def _batches(rows: Iterable[Row | BadRow]) -> Iterator[list[Row | BadRow]]:
    source = iter(rows)
    while batch := list(itertools.islice(source, _BATCH)):
        yield batch
