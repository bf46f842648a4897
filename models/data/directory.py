"""The questions that models learn from and are measured on, by the names of their files."""

from dataclasses import dataclass
from pathlib import Path

from models.data.rows import Passage, Question, read_passages, read_questions

DEVELOPMENT = ("dev-squad", "dev-nq")


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """Where public data lies: `qa/*.jsonl.zst` and `passages/wiki2015.tsv.zst`."""

    root: Path

    def development(self, name: str) -> list[Question]:
        """A development set: for measuring, never for training."""
        return read_questions(self.root / "qa" / f"{name}.jsonl.zst")

    def all_development(self) -> list[Question]:
        """Every question of every development set."""
        return [question for name in DEVELOPMENT for question in self.development(name)]

    def gold(self) -> list[Question]:
        """Training questions with the paragraph that answers them."""
        return read_questions(self.root / "qa" / "reader-train.jsonl.zst")

    def pairs(self) -> list[Question]:
        """Training questions with answers only."""
        return read_questions(self.root / "qa" / "pairs-train.jsonl.zst")

    def wikipedia(self, keep_every: int = 1) -> list[Passage]:
        """Every `keep_every`-th Wikipedia passage of 100 words."""
        return list(read_passages(self.root / "passages" / "wiki2015.tsv.zst", keep_every))
