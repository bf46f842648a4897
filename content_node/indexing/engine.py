"""What encodes the passages of a build: threads of this process, unless it is told otherwise."""

from typing import Protocol

from winnow.bundle import Bundle
from winnow.content_node.indexing.encode import encode_pending
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.indexing.staging import Staging
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.runtime import InferenceOptions
from winnow.passages.encoding import PassageEncoder
from winnow.text.tokenizer import Tokenizer

ENCODING = "encoding passages"
"""The stage of a build, as its user sees it."""


class Engine(Protocol):
    """Encodes. Whatever does it, the vectors are the same to the last bit."""

    def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
        """Stores a vector for every passage that has none yet; what is stored is kept."""


class LocalEngine:
    """Threads of this process."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
        """Stores a vector for every passage that has none yet."""
        progress.start(ENCODING, *staging.counts())
        encoder = open_encoder(bundle, self._threads)
        encode_pending(staging, encoder, self._threads, progress.advance)


def open_encoder(bundle: Bundle, runs: int = 1) -> PassageEncoder:
    """The passage encoder of a bundle, for so many runs at the same time."""
    special = Tokenizer(bundle.tokenizer).special
    model = open_passage_encoder(bundle, special, InferenceOptions(runs=runs))
    return PassageEncoder(model, bundle.manifest.encoder)
