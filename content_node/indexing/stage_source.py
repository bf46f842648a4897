"""Copies passages into the staging database, from a file or from another index."""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from winnow.bundle import Bundle
from winnow.content_node.indexing.plan import BuildListener, BuildPlan, DocumentSource
from winnow.content_node.indexing.source_index import is_index, replay_unmerged, verified_shards
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.shard.hnsw import can_use_graphs
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.documents.folder import SkippedFile
from winnow.domain.shard import GRAPHLESS_UP_TO, suitable_shards
from winnow.domain.tenant import own_id
from winnow.errors import ArtefactError
from winnow.passages.encoding import tokenise
from winnow.passages.formats import parser
from winnow.passages.rows import BadRow, Row, read_rows
from winnow.quoting import many
from winnow.text.language import LanguageCheck
from winnow.text.tokenizer import Tokenizer

_BATCH = 512
_GRAPHLESS_SHARD = GRAPHLESS_UP_TO * 9 // 10
"""Wanted number of passages of a shard without a graph; some shards get more by chance."""
_FEW_UNREAD = 0.02
"""Share of passages in other languages, such as quotations and tables, that is not reported."""


class BadRowsError(ArtefactError):
    """The source has rows that are not valid passages."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"the source has {many(count, 'bad row')}: correct them, or add --skip-bad-rows"
        )
        self.count = count


def check_source(plan: BuildPlan) -> None:
    """Raises ArtefactError if the source is neither an index nor a file of a known format."""
    source = plan.source
    if plan.documents is not None:
        return
    if is_index(source):
        if plan.cut_documents:
            raise ArtefactError(f"{source} is an index: its passages cannot be cut; omit --cut")
        if plan.tenants and not read_index_manifest(source).tenants:
            raise ArtefactError(
                f"{source} is an index without tenants: export its passages, and add the field "
                "tenant to each row"
            )
        return
    if source.is_dir():
        raise ArtefactError(
            f"{source} is neither a file nor an index: to index the documents of a folder, use "
            "--documents"
        )
    if not source.exists():
        raise ArtefactError(f"no file or index {source}: check the path")
    if not source.is_file():
        raise ArtefactError(
            f"{source} is not a regular file: it is read twice, so write its content to a file"
        )
    parser(source)


def stage_passages(
    staging: Staging, plan: BuildPlan, bundle: Bundle, resume_key: object, progress: BuildListener
) -> None:
    """Stages every passage and its shard, and records `resume_key` once all are staged.

    A resumed build keeps the recorded number of shards, and vectors of an earlier content.

    Raises:
        BadRowsError: the source has bad rows, and the plan does not skip them.
        ArtefactError: the source cannot be read, or has no passages.

    """
    resumes = staging.has_kept_vectors
    staging.clear()
    skipped: list[SkippedFile] = []
    if plan.documents is not None:
        source, bad_rows = plan.source.resolve().name, 0  # `.` has no name
        skipped = _stage_documents(staging, plan.documents, bundle, progress)
    elif is_index(plan.source):
        source, bad_rows = _copy_index(staging, plan, bundle, progress)
    else:
        source, bad_rows = plan.source.name, _stage_file(staging, plan, bundle, progress)
    tenants = plan.tenants
    if plan.documents is None and is_index(plan.source):
        tenants = read_index_manifest(plan.source).tenants is True
    if staging.counts()[0] == 0:
        missing = "passages" if plan.documents is None else "documents that can be converted"
        raise ArtefactError(f"{plan.source} has no {missing}")
    shards = plan.shards
    if shards is None:
        shards = chosen_shards(staging.counts()[0], plan)
        progress.shards_chosen(shards)
    staging.reuse_vectors()
    if resumes:
        progress.folder_changed(*staging.counts())
    staging.partition(shards)
    record_staged(
        staging,
        shards,
        plan=resume_key,
        source=source,
        bad_rows=bad_rows,
        tenants=tenants,
        skipped_files=[[each.name, each.reason, each.is_indexed] for each in skipped],
    )


def record_staged(
    staging: Staging, shards: int, source: str = "", bad_rows: int = 0, **values: object
) -> None:
    """Records that all passages are staged, and gives the index its id."""
    staging.record(
        shards=shards,
        index_id=uuid.uuid4().hex[:16],
        source=source,
        bad_rows=bad_rows,
        staged=True,
        **values,
    )


def chosen_shards(passages: int, plan: BuildPlan) -> int:
    """Returns a suitable number of shards: smaller ones if no shard can have a graph."""
    most = plan.passages_per_shard
    if not can_use_graphs():
        most = min(most, _GRAPHLESS_SHARD)
    return suitable_shards(passages, most)


def report_skipped_files(staging: Staging, progress: BuildListener) -> None:
    """Reports the files that could not be converted when the passages were staged."""
    skipped = staging.get("skipped_files")
    for values in skipped if isinstance(skipped, list) else ():
        progress.skipped_file(SkippedFile(*values))


def _copy_index(
    staging: Staging, plan: BuildPlan, bundle: Bundle, progress: BuildListener
) -> tuple[str, int]:
    """Stages the passages of an index; returns its original source and its number of bad rows."""

    def apply(write: LoggedWrite) -> None:
        staging.apply(write)
        progress.advance(1)

    shards = verified_shards(plan.source, bundle.manifest)
    index = read_index_manifest(plan.source)
    steps = sum(shard.manifest.passages + shard.unmerged for _, shard in shards)
    progress.start("copying passages", steps)
    for directory, shard in shards:
        staging.copy_shard(shard.base / shard.manifest.store, progress.advance)
        replay_unmerged(directory, shard, apply)
    return index.source, index.bad_rows


def _stage_file(staging: Staging, plan: BuildPlan, bundle: Bundle, progress: BuildListener) -> int:
    """Stages the passages of a file; returns the number of bad rows."""
    tokenizer, languages = Tokenizer(bundle.tokenizer), _LanguageCount(bundle)
    progress.start("reading passages", None)
    bad_rows = 0
    rows = iter(read_rows(plan.source, plan.cut_documents, tenants=plan.tenants))
    while batch := list(islice(rows, _BATCH)):
        bad = [row for row in batch if isinstance(row, BadRow)]
        good = [row for row in batch if isinstance(row, Row)]
        languages.add(row.passage.text for row in good)
        bad += _stage_rows(staging, good, tokenizer)
        for row in sorted(bad, key=lambda row: row.line):
            progress.bad_row(row)
        bad_rows += len(bad)
        progress.advance(len(batch))
    languages.report(progress)
    if bad_rows and not plan.skip_bad_rows:
        raise BadRowsError(bad_rows)
    return bad_rows


class _LanguageCount:
    """Counts passages in languages that a bundle does not read."""

    def __init__(self, bundle: Bundle) -> None:
        self._check = LanguageCheck(bundle.manifest.languages)
        self._passages = 0
        self._unread: Counter[str] = Counter()

    def add(self, texts: Iterable[str]) -> None:
        languages = list(map(self._check.unread_language, texts))
        self._passages += len(languages)
        self._unread.update(filter(None, languages))

    def report(self, progress: BuildListener) -> None:
        """Reports the languages if they have more than a few of the passages."""
        if self._unread.total() > _FEW_UNREAD * self._passages:
            progress.unread_languages(self._unread, self._passages)


def _stage_documents(
    staging: Staging, source: DocumentSource, bundle: Bundle, progress: BuildListener
) -> list[SkippedFile]:
    """Stages the passages of documents; returns the files that could not be converted."""
    tokenizer, languages = Tokenizer(bundle.tokenizer), _LanguageCount(bundle)
    progress.start("converting documents", len(source.folder.files))
    skipped = []
    for document in source.folder.read(source.convert):
        if isinstance(document, SkippedFile):
            skipped.append(document)
        else:
            skipped += (
                SkippedFile(document.name, note, is_indexed=True) for note in document.notes
            )
            languages.add(put.passage.text for put in document.puts)
            for encoded in tokenise(tokenizer, document.puts):
                staging.add(encoded.write())
        progress.advance(1)
    for each in skipped:
        progress.skipped_file(each)
    languages.report(progress)
    return skipped


def _stage_rows(staging: Staging, rows: list[Row], tokenizer: Tokenizer) -> Iterator[BadRow]:
    """Stages rows; yields a bad row for each id that was staged before."""
    for row, encoded in zip(rows, tokenise(tokenizer, [row.put for row in rows]), strict=True):
        if not staging.add(encoded.write()):
            yield BadRow(row.line, f"duplicate id {own_id(row.passage.id)}")
