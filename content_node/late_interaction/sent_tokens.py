"""Token vectors that front nodes sent with passages, so that the node need not compute them.

They equal those that the node would compute, because the front node has the same encoder and the
same projection. Those of others are ignored.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.bundle.manifest import Manifest
from winnow.content_node.late_interaction.scoring import LateScorer
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.shard.store import TOKEN_BYTES
from winnow.domain.write import EncodedPassage
from winnow.passages.encoding import count_encoded_tokens


@dataclass(frozen=True, slots=True)
class SentTokens:
    """Keeps the token vectors of the writes of one shard. Safe to use from several threads."""

    manifest: Manifest
    """Manifest of the node's bundle."""
    scorer: LateScorer

    def keep(self, writes: Iterable[LoggedWrite]) -> None:
        """Keeps the token vectors that writes contain, before questions see the passages."""
        for write in writes:
            levels = None if write.put is None else self._levels(write.put)
            if levels is not None:
                self.scorer.keep(write.id, write.sequence, levels)

    def _levels(self, put: EncodedPassage) -> NDArray[np.int8] | None:
        """Returns the levels of a passage, [tokens, values]; None if it has no usable ones."""
        late = self.manifest.late_interaction
        if late is None or put.token_vectors_fingerprint != self.manifest.token_vectors_fingerprint:
            return None
        title, text = (
            range(len(ids) // TOKEN_BYTES) for ids in (put.title_tokens, put.text_tokens)
        )
        shape = count_encoded_tokens(self.manifest.encoder, title, text), late.values
        levels = np.frombuffer(put.token_levels, np.int8)
        return levels.reshape(shape) if levels.size == shape[0] * shape[1] else None
