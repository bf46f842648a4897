"""What to build, and whom to tell how it goes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from winnow.content_node.shard.writing import GraphPlan
from winnow.passages.rows import BadRow


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """What to build."""

    source: Path
    target: Path
    shards: int
    threads: int
    skip_bad_rows: bool = False
    graph: GraphPlan = field(default_factory=GraphPlan)
    documents: bool = False
    """Whether rows are raw documents, each of which is cut into passages."""


class BuildListener(Protocol):
    """Told how a build goes on."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """A stage begins, with so many steps, some of them done in an earlier run."""

    def advance(self, steps: int) -> None:
        """Steps of the present stage are done."""

    def bad_row(self, row: BadRow) -> None:
        """A row was not a passage."""

    def kept(self, directory: Path) -> None:
        """The build ends early; the same command goes on from what lies in `directory`."""
