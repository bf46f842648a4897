"""The one interface of the heads of an encoder group: in this process, on a server, or on several.

Implementations: `winnow.heads.local` (loaded here on first use, under a memory budget) and
`winnow.heads.placed` (on head servers, each called by `winnow.heads.remote`).
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied

States = NDArray[np.float16]
"""[tokens + 2, width]: hidden states of a text, with [CLS] before and [SEP] after it."""


class Heads(Protocol):
    """Heads that were all trained on one encoder. A failure of one head is a result."""

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies each head, in the order given; one that cannot be applied says why.

        Args:
            states: of one text, by the encoder of these heads. Nobody writes to them.
            head_ids: distinct.
            deadline: of the caller. A head that is not there in time fails; the others do not.
            client: a key of the caller, for sharing the threads fairly.

        """
