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
        """The checksum of the encoder that made them."""
        return self.mined / "encoder.sha256"

    @property
    def found(self) -> Path:
        """What the served retriever finds for training questions."""
        return self.root / "found.jsonl"

    @property
    def ranked(self) -> Path:
        """Training questions with what the served retriever finds for them."""
        return self.root / "ranked"

    @property
    def clozes(self) -> Path:
        """Training questions that nobody asked, made of passages."""
        return self.root / "clozes"

    def run(self, network: str, layers: int | None = None) -> Path:
        """A training run: of `encoder` or `reader`, the whole one or a student with `layers`."""
        return self.root / f"{_name(network, layers)}.pt"

    def apart_run(self, layers: int) -> Path:
        """A training run of a reader with so many layers apart."""
        return self.root / f"reader-apart-{layers}.pt"

    def reader_runs(self, members: int) -> list[Path]:
        """The training runs whose readers are averaged."""
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
        """What the reader made of held-out questions."""
        return self.root / "candidates.npz"

    def graph(self, network: str, precision: str, layers: int | None = None) -> Path:
        """An exported network: `encoder` or `reader`, `fp32` or `int8`, whole or a student."""
        return self.root / f"{_name(network, layers)}-{precision}.onnx"

    def half(self, half: str, precision: str, layers: int) -> Path:
        """An exported half, `lower` or `upper`, of a reader with so many layers apart."""
        return self.root / f"reader-apart-{layers}-{half}-{precision}.onnx"

    def made(self) -> "Workspace":
        """The same, its directory being there.

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
    """Which of the trained readers a bundle has."""

    layers: int | None = None
    """Of a smaller one; none is the whole one."""
    apart: int = 0
    """Layers in which it takes questions and passages apart."""

    def __str__(self) -> str:
        if self.apart:
            return f"the one with {self.apart} layers apart"
        return "the whole one" if self.layers is None else f"the one of {self.layers} layers"
