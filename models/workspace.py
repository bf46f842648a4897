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
    def mined_by(self) -> Path:
        """The checksum of the encoder that made them."""
        return self.mined / "encoder.sha256"

    @property
    def encoder_run(self) -> Path:
        """The encoder's training run."""
        return self.root / "encoder.pt"

    @property
    def reader_run(self) -> Path:
        """The reader's training run."""
        return self.root / "reader.pt"

    @property
    def vectors(self) -> Path:
        """Vectors of passages, kept."""
        return self.root / "vectors"

    @property
    def candidates(self) -> Path:
        """What the reader made of held-out questions."""
        return self.root / "candidates.npz"

    def graph(self, network: str, precision: str) -> Path:
        """An exported network: `encoder` or `reader`, `fp32` or `int8`."""
        return self.root / f"{network}-{precision}.onnx"

    def made(self) -> "Workspace":
        """The same, its directory being there."""
        self.root.mkdir(parents=True, exist_ok=True)
        return self
