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
    """A text as its encoder sees it. Arrays may be shared, so nobody writes to them."""

    vector: NDArray[np.float32]
    """[dimension], of norm one."""
    states: NDArray[np.float16] | None = None
    """[tokens + 2, width]: a hidden state of each token, with [CLS] before and [SEP] after
    them. Half precision everywhere, so that heads say the same of states that travelled. None where
    the bundle names no such output.
    """
    queue: float = 0.0
    """Seconds that it waited before it was encoded."""
    encode: float = 0.0
    """Seconds that the encoder ran for it; 0 if it was encoded before."""


Then = Callable[[TextEncoding], None]
"""What is done with an encoding where it is made: handing it over to another thread may take longer
than to do it. It must not raise.
"""


class TextEncoder(Protocol):
    """Encodes each text by itself, so that none depends on its neighbours."""

    async def encode(
        self, ids: Sequence[int], client: str = "", then: Then | None = None
    ) -> TextEncoding:
        """Encodes token ids given without special tokens; at most what the encoder was made for.

        Args:
            ids: of the tokens.
            client: a key of the caller, for sharing the encoder fairly.
            then: is called with the encoding in the thread that has made it, in the same turn. An
                encoder that has it already, or elsewhere, need not call it.

        """

    async def warm_up(self, longest: int) -> None:
        """Encodes at several lengths up to `longest` tokens: first runs at a length are slow."""

    def close(self) -> None:
        """Ends what it began. Callers that still wait for an encoding are cancelled."""
