"""The interface of an encoder group's heads, whether local or on head servers.

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
"""Token states of a text, [tokens + 2, width]; [CLS] is the first token, [SEP] the last."""


class Heads(Protocol):
    """The heads trained on one encoder. If a head fails, its result has the error."""

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies heads to a text; returns a result for each, in the given order.

        Args:
            states: token states of one text, from the encoder of these heads; not modified.
            head_ids: distinct ids of heads.
            deadline: deadline of the caller. A late head fails; the other heads do not.
            client: name of the caller, for fair sharing of threads.

        """
