"""Token vectors of another encoder than the bundle's, which a merge copies and cannot compute.

They are of the next bundle while nodes still serve the present one. Otherwise the first merge after
`winnow index token-vectors` would undo its work.
"""

from winnow.bundle.manifest import BundleEncoder
from winnow.content_node.states.manifest import StatesManifest
from winnow.errors import ArtefactError
from winnow.passages.encoding import count_encoded_tokens
from winnow.reading.states_kind import TOKEN_VECTORS, StatesKind
from winnow.reading.stored_passage import StoredPassage


class CopiedTokens:
    """A `StatesModel` of token vectors that can only be copied."""

    def __init__(self, entry: BundleEncoder, manifest: StatesManifest) -> None:
        """`manifest` is that of the token vectors. `entry` is of an encoder that encodes the same
        tokens of a passage; all bundles of an index have such an encoder.
        """
        self._entry = entry
        self.fingerprint, self.width = manifest.fingerprint, manifest.width

    @property
    def kind(self) -> StatesKind:
        """The kind of data."""
        return TOKEN_VECTORS

    def count_tokens(self, stored: StoredPassage) -> int:
        """Counts the encoded tokens of a passage, with special tokens."""
        return count_encoded_tokens(self._entry, stored.title_ids, stored.tokens.ids)

    def packed(self, stored: StoredPassage) -> bytes:
        """Raises ArtefactError, since the bundle of the token vectors is not known."""
        raise ArtefactError(f"the token vectors of passage {stored.passage.id} cannot be copied")
