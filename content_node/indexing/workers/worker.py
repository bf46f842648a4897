"""A worker: what runs in a process of its own, perhaps on another machine.

Knows nothing of Ray. All it needs is sent to it; of its machine it needs the same `winnow-qa`.
"""

import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.bundle.manifest import Manifest
from winnow.content_node.indexing.workers.piece import PassageBatch, Vectors
from winnow.files.opened import verify
from winnow.inference.encoder import open_passage_encoder
from winnow.passages.encoding import PassageEncoder
from winnow.text.tokenizer import SpecialTokens, Tokenizer


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that a worker needs to encode as this process does."""

    manifest: Manifest
    special: SpecialTokens
    model: NDArray[np.uint8]
    """The bytes of the passage encoder's file."""


def recipe_of(bundle: Bundle) -> Recipe:
    """What workers are sent of a bundle: of its files, the passage encoder alone."""
    model = np.fromfile(bundle.passage_encoder, np.uint8)
    return Recipe(bundle.manifest, Tokenizer(bundle.tokenizer).special, model)


def encode_piece(encoder: PassageEncoder, piece: PassageBatch) -> Vectors:
    """One passage a run, as everywhere."""
    return np.stack([encoder.encode(title, text) for title, text in piece.passages])


class Worker:
    """Encodes one piece after the other, in one thread."""

    def __init__(self) -> None:
        self._encoder: PassageEncoder | None = None

    def prepare(self, recipe: Recipe, sample: PassageBatch) -> tuple[str, Vectors]:
        """Opens the encoder; the name of this machine, and the vectors of a sample.

        Raises:
            ArtefactError: the model cannot be opened here, or was damaged on its way.

        """
        self._encoder = _opened(recipe)
        return socket.gethostname(), encode_piece(self._encoder, sample)

    def encode(self, piece: PassageBatch) -> Vectors:
        """The vectors of a piece, once it is prepared."""
        assert self._encoder is not None
        return encode_piece(self._encoder, piece)


def _opened(recipe: Recipe) -> PassageEncoder:
    manifest = recipe.manifest
    with tempfile.TemporaryDirectory(prefix="winnow-") as directory:
        bundle = Bundle(Path(directory), manifest)
        # models are opened by their path; an open one does without its file
        bundle.passage_encoder.parent.mkdir(parents=True, exist_ok=True)
        recipe.model.tofile(bundle.passage_encoder)
        entry = manifest.files[manifest.encoder.passage]
        verify(bundle.passage_encoder, entry.sha256, entry.bytes)
        model = open_passage_encoder(bundle, recipe.special)
    return PassageEncoder(model, manifest.encoder)
