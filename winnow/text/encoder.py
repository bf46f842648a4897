"""The interface of a text encoder, whether local, cached or remote.

Implementations: `winnow.inference.local` (threads of this process), `winnow.inference.batching`
(several texts per run), `winnow.text.routed` (encoder nodes), `winnow.text.cached` (a cache of
another encoder).
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.domain.question import QuestionTokens

SPECIAL_TOKENS = 2
"""Number of special tokens that an encoder adds to a text: [CLS] and [SEP]."""


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The encoding of a text. Its arrays are shared: do not write to them."""

    vector: NDArray[np.float32]
    """Vector of the text: [dimension], normalised to length one."""
    states: NDArray[np.float16] | None = None
    """Hidden state of each token: [tokens + SPECIAL_TOKENS, width], [CLS] first, [SEP] last.

    Always in half precision, so that heads predict the same from local and remote states. None if
    the bundle has no output of states.
    """
    queue: float = 0.0
    """Seconds that the text waited before it was encoded."""
    encode: float = 0.0
    """Seconds that the encoder ran; 0 for a cached encoding."""
    _: KW_ONLY
    tokens: QuestionTokens | None = None
    """Token vectors for late interaction; None if the encoder returns none."""


OnEncoded = Callable[[TextEncoding], None]
"""Called with an encoding in the thread that made it, which saves a switch of threads. It must not
raise.
"""


class TextEncoder(Protocol):
    """Encodes each text independently of other texts."""

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        """Encodes a text.

        Args:
            ids: token ids without special tokens, at most as many as the encoder accepts.
            client: key of the caller, for fair sharing of the encoder.
            on_encoded: called with the encoding in the thread that made it. Cached and remote
                encoders need not call it.

        """

    async def warm_up(self, max_tokens: int) -> None:
        """Encodes dummy texts of up to `max_tokens` tokens, since the first run at each length is
        slow.
        """

    def close(self) -> None:
        """Closes the encoder and cancels waiting calls of `encode`."""
