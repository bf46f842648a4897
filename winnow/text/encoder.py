"""The one interface of an encoder of texts: local, cached or remote.

Implementations: `winnow.inference.local` (threads of this process), `winnow.inference.batching`
(several texts a run), `winnow.text.remote` (a server), `winnow.text.cached` (around any other one).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The encoding of a text. Its arrays may be shared, so do not write to them."""

    vector: NDArray[np.float32]
    """[dimension], of norm one."""
    states: NDArray[np.float16] | None = None
    """[tokens + 2, width]: a hidden state of each token, with [CLS] before and [SEP] after them.

    They have half precision everywhere, so that heads predict the same from states that travelled.
    None if the bundle names no such output.
    """
    queue: float = 0.0
    """Seconds that it waited before it was encoded."""
    encode: float = 0.0
    """Seconds that the encoder ran for it; 0 if it was encoded before."""


Then = Callable[[TextEncoding], None]
"""Is called with an encoding in the thread that made it: handing the encoding to another thread may
take longer than the call. It must not raise.
"""


class TextEncoder(Protocol):
    """Encodes each text by itself, so that none depends on its neighbours."""

    async def encode(
        self, ids: Sequence[int], client: str = "", then: Then | None = None
    ) -> TextEncoding:
        """Encodes token ids given without special tokens, at most as many as the encoder takes.

        Args:
            ids: ids of the tokens.
            client: key of the caller, for sharing the encoder fairly.
            then: is called with the encoding in the thread that has made it, in the same turn. An
                encoder that has the encoding already, or elsewhere, need not call it.

        """

    async def warm_up(self, longest: int) -> None:
        """Encodes at several lengths up to `longest` tokens: first runs at a length are slow."""

    def close(self) -> None:
        """Ends the encoder; calls of `encode` that still wait are cancelled."""
