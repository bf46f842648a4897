"""The options of a build, and its progress."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rich.console import Console

from winnow.content_node.shard.writing import GraphPlan
from winnow.documents.folder import SkippedFile
from winnow.documents.reading import Convert, ScannedFolder
from winnow.domain.shard import PASSAGES_PER_SHARD
from winnow.passages.progress import RowProgress
from winnow.passages.rows import BadRow
from winnow.quoting import are, many

_MAX_LANGUAGES = 5
"""Number of languages that a report names."""


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """The documents of a folder, and what converts them."""

    folder: ScannedFolder
    convert: Convert


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """The source, the target and the options of a build."""

    source: Path
    """A file of passages, an index, or a folder of documents."""
    target: Path
    threads: int
    shards: int | None = None
    """Number of shards; None to choose it by the number of passages."""
    passages_per_shard: int = PASSAGES_PER_SHARD
    """Maximum average number of passages of a shard, if `shards` is None."""
    skip_bad_rows: bool = False
    graph: GraphPlan = field(default_factory=GraphPlan)
    cut_documents: bool = False
    """Whether rows are raw documents, which are cut into passages."""
    tenants: bool = False
    """Whether each row must name its tenant. An index keeps what its source has."""
    documents: DocumentSource | None = None
    """The documents of `source`; None if it is not a folder of documents."""


class BuildListener(Protocol):
    """Receives the progress of a build."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """Begins a stage; `done` of its `total` steps were done in an earlier run."""

    def advance(self, steps: int) -> None:
        """Adds `steps` finished steps to the current stage."""

    def bad_row(self, row: BadRow) -> None:
        """Reports a row that is not a passage."""

    def unread_languages(self, passages: Mapping[str, int], total: int) -> None:
        """Reports passages by the ISO 639-1 code of a language that the bundle does not read."""

    def skipped_file(self, file: SkippedFile) -> None:
        """Reports a file that could not be indexed."""

    def shards_chosen(self, shards: int) -> None:
        """Reports the number of shards that the build chose."""

    def folder_changed(self, passages: int, encoded: int) -> None:
        """Reports that the folder has changed since the build began, and what is still encoded."""

    def workspace_kept(self, directory: Path) -> None:
        """Reports that a failed build can be resumed from `directory` by the same command."""


class BuildProgress(RowProgress):
    """Shows the progress of a build on standard error; a context manager."""

    def unread_languages(self, passages: Mapping[str, int], total: int) -> None:
        ordered = sorted(passages, key=lambda language: (-passages[language], language))
        counts = ", ".join(f"{passages[each]:,} {each}" for each in ordered[:_MAX_LANGUAGES])
        self.say(
            f"{sum(passages.values()):,} of {are(total, 'passage')} in languages that the bundle "
            f"does not read ({counts}): questions rarely find them"
        )

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self.skipped_files: list[SkippedFile] = []

    def skipped_file(self, file: SkippedFile) -> None:
        self.skipped_files.append(file)

    def shards_chosen(self, shards: int) -> None:
        self.say(f"the index gets {many(shards, 'shard')}; --shards sets another number")

    def folder_changed(self, passages: int, encoded: int) -> None:
        self.say(
            f"the folder has changed since the build began: {encoded:,} of "
            f"{are(passages, 'passage')} encoded already"
        )

    def workspace_kept(self, directory: Path) -> None:
        self.say(
            f"{directory} keeps the finished work: run the same command again to resume, or remove "
            "the directory"
        )
