"""Where the steps of making a bundle leave their results for one another."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Workspace:
    """A directory of intermediate files; everything in it can be made again."""

    root: Path

    @property
    def mined(self) -> Path:
        """Training questions with their passages."""
        return self.root / "mined"

    @property
    def checkpoint(self) -> Path:
        """The reader's training run."""
        return self.root / "reader.pt"

    def graph(self, network: str, precision: str) -> Path:
        """An exported network: `encoder` or `reader`, `fp32` or `int8`."""
        return self.root / f"{network}-{precision}.onnx"

    def made(self) -> "Workspace":
        """The same, its directory being there."""
        self.root.mkdir(parents=True, exist_ok=True)
        return self
