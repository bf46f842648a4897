"""Computes the token vectors of stored passages.

A run has one passage, so its token vectors depend on nothing else.
"""

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.errors import ArtefactError
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.options import PLAIN, InferenceOptions
from winnow.passages.encoding import PassageEncoder
from winnow.reading.states_kind import TOKEN_VECTORS, StatesKind, with_checksum
from winnow.reading.stored_passage import StoredPassage
from winnow.text.tokenizer import SpecialTokens


class PassageTokens:
    """Runs the passage encoder for token vectors. Safe to use from several threads."""

    def __init__(self, encoder: PassageEncoder, width: int, fingerprint: str) -> None:
        """`fingerprint` is that of the bundle's token vectors, `width` their number of values."""
        self._encoder, self.width, self.fingerprint = encoder, width, fingerprint

    @property
    def kind(self) -> StatesKind:
        """The kind of data that a shard stores of this model."""
        return TOKEN_VECTORS

    def count_tokens(self, stored: StoredPassage) -> int:
        """Counts the encoded tokens of a passage, with special tokens."""
        return self._encoder.count_tokens(stored.title_ids, stored.tokens.ids)

    def levels(self, stored: StoredPassage) -> NDArray[np.int8]:
        """Computes the levels of a passage's token vectors, [tokens, values]."""
        return self._encoder.token_vectors(stored.title_ids, stored.tokens.ids)

    def packed(self, stored: StoredPassage) -> bytes:
        """Computes the token vectors of a passage, in the format on disk."""
        return with_checksum(self.levels(stored).tobytes())


def open_passage_tokens(
    bundle: Bundle, special: SpecialTokens, options: InferenceOptions = PLAIN
) -> PassageTokens:
    """Opens the passage encoder of a bundle with token vectors.

    Raises:
        ArtefactError: the model cannot be opened, or the bundle has no late interaction.

    """
    manifest = bundle.manifest
    if manifest.late_interaction is None:
        raise ArtefactError(
            f"{bundle.directory} has no late interaction: `winnow models add-late-interaction` "
            "makes a bundle that has"
        )
    model = open_passage_encoder(bundle, special, options, token_vectors=True)
    encoder = PassageEncoder(model, manifest.encoder)
    width = manifest.late_interaction.values
    return PassageTokens(encoder, width, manifest.token_vectors_fingerprint)
