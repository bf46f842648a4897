"""The directory in which the steps of making a bundle leave their results for one another."""

from dataclasses import dataclass
from pathlib import Path

from models.data import DataError


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
        """Checksum of the encoder that mined them."""
        return self.mined / "encoder.sha256"

    @property
    def found(self) -> Path:
        """Passages that the served retriever finds for training questions."""
        return self.root / "found.jsonl"

    @property
    def ranked(self) -> Path:
        """Training questions with the passages that the served retriever finds."""
        return self.root / "ranked"

    @property
    def clozes(self) -> Path:
        """Cloze questions, made of passages."""
        return self.root / "clozes"

    def run(self, network: str, layers: int | None = None) -> Path:
        """Returns the checkpoint of a training run of `encoder` or `reader`."""
        return self.root / f"{_name(network, layers)}.pt"

    def split_run(self, layers: int) -> Path:
        """Returns the training run of a split reader."""
        return self.root / f"reader-apart-{layers}.pt"

    def reader_runs(self, members: int) -> list[Path]:
        """Returns the training runs whose readers are averaged."""
        others = [self.root / f"reader.{member}.pt" for member in range(2, members + 1)]
        return [self.run("reader"), *others]

    @property
    def states(self) -> Path:
        """States of labelled texts, kept."""
        return self.root / "states"

    @property
    def vectors(self) -> Path:
        """Vectors of passages, kept."""
        return self.root / "vectors"

    @property
    def candidates(self) -> Path:
        """Candidates that the reader read for held-out questions."""
        return self.root / "candidates.npz"

    def graph(self, network: str, precision: str, layers: int | None = None) -> Path:
        """Returns an exported network, `encoder` or `reader`, in `fp32` or `int8`."""
        return self.root / f"{_name(network, layers)}-{precision}.onnx"

    def split_graph(self, part: str, precision: str, layers: int) -> Path:
        """Returns an exported network of a split reader: `lower` or `upper`."""
        return self.root / f"reader-apart-{layers}-{part}-{precision}.onnx"

    def made(self) -> "Workspace":
        """Makes the directory, and returns the workspace.

        Raises:
            DataError: it cannot be made.

        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"cannot make {self.root}: {error.strerror}; name another directory by --work"
            ) from error
        return self


def _name(network: str, layers: int | None) -> str:
    return network if layers is None else f"{network}-{layers}"


@dataclass(frozen=True, slots=True)
class ReaderKind:
    """The kind of reader of a bundle."""

    layers: int | None = None
    """Layers of a smaller reader; None for the whole one."""
    apart: int = 0
    """Lower layers that are split; 0 for a reader that is not."""

    def __str__(self) -> str:
        if self.apart:
            return f"reader with {self.apart} split layers"
        return "full reader" if self.layers is None else f"reader of {self.layers} layers"
