"""A model that a merge cannot use: its data can be neither copied nor computed now."""

from winnow.content_node.states.manifest import StatesManifest
from winnow.errors import ArtefactError
from winnow.reading.states_kind import StatesKind
from winnow.reading.stored_passage import StoredPassage


class LostModel:
    """A `StatesModel` that computes nothing. It only says which data a shard had."""

    def __init__(self, kind: StatesKind, manifest: StatesManifest) -> None:
        """`manifest` is that of the data."""
        self.kind = kind
        self.fingerprint, self.width = manifest.fingerprint, manifest.width

    def count_tokens(self, stored: StoredPassage) -> int:
        """Returns 0, since no passage gets data."""
        return 0

    def packed(self, stored: StoredPassage) -> bytes:
        """Raises ArtefactError."""
        raise ArtefactError(f"the {self.kind.noun} of passage {stored.passage.id} were lost")
