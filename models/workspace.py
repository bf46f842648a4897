"""The directory of the intermediate files from which a bundle is made."""

from dataclasses import dataclass
from pathlib import Path

from models.data import DataError


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths of intermediate files, which the commands of `winnow models` can make again."""

    root: Path

    @property
    def mined_questions(self) -> Path:
        """Directory of training questions with hard negatives."""
        return self.root / "mined"

    @property
    def mining_encoder(self) -> Path:
        """File with the SHA-256 of the encoder graph that `mined_questions` were mined with."""
        return self.mined_questions / "encoder.sha256"

    @property
    def retrieved_passages(self) -> Path:
        """File of passages that the served retriever finds for training questions."""
        return self.root / "found.jsonl"

    @property
    def questions_with_negatives(self) -> Path:
        """Directory of training questions with negatives of the served retriever."""
        return self.root / "ranked"

    @property
    def cloze_questions(self) -> Path:
        """Directory of cloze questions."""
        return self.root / "clozes"

    def run_checkpoint_path(self, network: str, layers: int | None = None) -> Path:
        """Returns the checkpoint of a training run of `encoder`, `reader` or `ranking`."""
        return self.root / f"{_file_stem(network, layers)}.pt"

    def split_run_checkpoint_path(self, layers: int) -> Path:
        """Returns the checkpoint of a split reader's training run."""
        return self.root / f"reader-apart-{layers}.pt"

    def reader_run_paths(self, members: int) -> list[Path]:
        """Returns the checkpoints of the readers whose weights are averaged."""
        others = [self.root / f"reader.{member}.pt" for member in range(2, members + 1)]
        return [self.run_checkpoint_path("reader"), *others]

    @property
    def states(self) -> Path:
        """Directory that caches the states of labelled texts."""
        return self.root / "states"

    @property
    def vectors(self) -> Path:
        """Directory that caches the vectors of passages."""
        return self.root / "vectors"

    def scored_answer_candidates(self, kind: str) -> Path:
        """Returns the file with the reader's scores of candidate answers about a kind of text.

        Calibration fits its weights to these scores.
        """
        return self.root / f"candidates-{kind.lower()}.npz"

    def graph(self, network: str, precision: str, layers: int | None = None) -> Path:
        """Returns the graph of `encoder` or `reader` in `fp32` or `int8`."""
        return self.root / f"{_file_stem(network, layers)}-{precision}.onnx"

    def split_graph(self, part: str, precision: str, layers: int) -> Path:
        """Returns the graph of the `lower` or `upper` layers of a split reader."""
        return self.root / f"reader-apart-{layers}-{part}-{precision}.onnx"

    def create(self) -> "Workspace":
        """Creates the directory and returns the workspace.

        Raises:
            DataError: the directory cannot be created.

        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"cannot make {self.root}: {error.strerror}; set --work to another directory"
            ) from error
        return self


def _file_stem(network: str, layers: int | None) -> str:
    return network if layers is None else f"{network}-{layers}"


@dataclass(frozen=True, slots=True)
class ReaderKind:
    """The kind of a bundle's reader: full, smaller or split."""

    layers: int | None = None
    """Layers of a smaller reader; None for all layers."""
    split_layers: int = 0
    """Lower layers that see question and passage separately; 0 for a full cross-encoder."""

    def __str__(self) -> str:
        if self.split_layers:
            return f"reader with {self.split_layers} split layers"
        return "full reader" if self.layers is None else f"reader of {self.layers} layers"
