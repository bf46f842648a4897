"""The plan of a build, and its progress."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from winnow.content_node.shard.writing import GraphPlan
from winnow.passages.progress import RowProgress
from winnow.passages.rows import BadRow


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """The source, the target and the options of a build."""

    source: Path
    """A file of passages, or an index."""
    target: Path
    shards: int
    threads: int
    skip_bad_rows: bool = False
    graph: GraphPlan = field(default_factory=GraphPlan)
    documents: bool = False
    """Whether rows are raw documents, each of which is cut into passages."""


class BuildListener(Protocol):
    """Receives the progress of a build."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """A stage begins; `done` of its steps were done in an earlier run."""

    def advance(self, steps: int) -> None:
        """Steps of the present stage are done."""

    def bad_row(self, row: BadRow) -> None:
        """A row was not a passage."""

    def kept(self, directory: Path) -> None:
        """The build ends early, and the same command resumes it from `directory`."""


class BuildProgress(RowProgress):
    """Shows a build on standard error; a context manager."""

    def kept(self, directory: Path) -> None:
        self.say(f"{directory} keeps the work: run the same command again to resume, or remove it")
