"""Takes passages into the staging database, from a file or from another index."""

import itertools
import uuid
from collections.abc import Iterable, Iterator

from winnow.bundle import Bundle
from winnow.content_node.indexing.plan import BuildListener, BuildPlan
from winnow.content_node.indexing.recut import is_index, replay, sources
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.live.entry import Logged
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.domain.shard import shard_of
from winnow.errors import ArtefactError
from winnow.passages.encoding import tokenise
from winnow.passages.formats import parser
from winnow.passages.rows import BadRow, Row, read_rows
from winnow.quoting import many
from winnow.text.tokenizer import Tokenizer

_BATCH = 512


class BadRowsError(ArtefactError):
    """The source has rows that are no passages."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{many(count, 'bad row')}: correct, or leave out with --skip-bad-rows")
        self.count = count


def check_source(plan: BuildPlan) -> None:
    """Raises ArtefactError if the source is neither an index nor a file of a known format."""
    source = plan.source
    if is_index(source):
        if plan.documents:
            raise ArtefactError(f"{source} is an index: its passages cannot be cut; omit --cut")
        return
    if source.is_dir():
        raise ArtefactError(f"{source} is a directory, not an index: give a file with --passages")
    if not source.exists():
        raise ArtefactError(f"no file or index {source}: check the path")
    if not source.is_file():
        raise ArtefactError(f"{source} is not a regular file: it is read twice, so write it to one")
    parser(source)


def take_in(
    staging: Staging, plan: BuildPlan, bundle: Bundle, wanted: object, progress: BuildListener
) -> None:
    """Adds every passage, and then notes that the passages of the plan `wanted` are staged.

    Raises:
        BadRowsError: the source has bad rows and they are not to be skipped.
        ArtefactError: the source cannot be read, or has no passages.

    """
    staging.clear()
    if is_index(plan.source):
        source, bad_rows = _take_over(staging, plan, bundle, progress)
    else:
        source, bad_rows = plan.source.name, _stage(staging, plan, bundle, progress)
    if staging.counts()[0] == 0:
        raise ArtefactError(f"{plan.source} has no passages")
    staging.note(
        plan=wanted,
        index_id=uuid.uuid4().hex[:16],
        source=source,
        bad_rows=bad_rows,
        staged=True,
    )


def _take_over(
    staging: Staging, plan: BuildPlan, bundle: Bundle, progress: BuildListener
) -> tuple[str, int]:
    def place(identifier: str) -> int:
        return shard_of(identifier, plan.shards)

    def apply(write: Logged) -> None:
        staging.apply(write, place(write.id))
        progress.advance(1)

    found = sources(plan.source, bundle.manifest)
    index = read_index_manifest(plan.source)
    steps = sum(now.manifest.passages + now.unmerged for _, now in found)
    progress.start("taking over passages", steps)
    for shard, now in found:
        staging.copy(now.base / now.manifest.store, place, progress.advance)
        replay(shard, now, apply)
    return index.source, index.bad_rows


def _stage(staging: Staging, plan: BuildPlan, bundle: Bundle, progress: BuildListener) -> int:
    tokenizer = Tokenizer(bundle.tokenizer)
    progress.start("reading passages", None)
    bad = 0
    for batch in _batches(read_rows(plan.source, plan.documents)):
        faults = [row for row in batch if isinstance(row, BadRow)]
        faults += _add(staging, [row for row in batch if isinstance(row, Row)], tokenizer, plan)
        for fault in sorted(faults, key=lambda row: row.line):
            progress.bad_row(fault)
        bad += len(faults)
        progress.advance(len(batch))
    if bad and not plan.skip_bad_rows:
        raise BadRowsError(bad)
    return bad


def _add(
    staging: Staging, rows: list[Row], tokenizer: Tokenizer, plan: BuildPlan
) -> Iterator[BadRow]:
    for row, each in zip(rows, tokenise(tokenizer, [row.put for row in rows]), strict=True):
        if not staging.add(each.write(), shard_of(row.passage.id, plan.shards)):
            yield BadRow(row.line, f"duplicate id {row.passage.id}")


def _batches(rows: Iterable[Row | BadRow]) -> Iterator[list[Row | BadRow]]:
    source = iter(rows)
    while batch := list(itertools.islice(source, _BATCH)):
        yield batch
