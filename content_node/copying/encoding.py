"""Encodes copied passages with the bundle of the copy."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.content_node.indexing.engine import open_encoder
from winnow.domain.write import Put, Write
from winnow.passages.encoding import TokenisedPut, tokenise
from winnow.text.tokenizer import Tokenizer


class CopyEncoder:
    """Tokenises and encodes passages in threads. All methods block."""

    def __init__(self, bundle: Bundle, threads: int) -> None:
        """Opens the encoder of the bundle; raises ArtefactError if that fails."""
        self.fingerprint = bundle.manifest.encoding_fingerprint
        """Identifies how passages become vectors."""
        self._tokenizer = Tokenizer(bundle.tokenizer)
        self._encoder = open_encoder(bundle, threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="encode")

    def encode(self, puts: Sequence[Put]) -> list[Write]:
        """Returns the writes that store passages, in their order."""
        tokenised = list(tokenise(self._tokenizer, puts))
        vectors = self._pool.map(self._vector, tokenised)
        return [each.write(vector) for each, vector in zip(tokenised, vectors, strict=True)]

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _vector(self, put: TokenisedPut) -> NDArray[np.float32]:
        return self._encoder.encode(put.title.ids, put.text.ids)
