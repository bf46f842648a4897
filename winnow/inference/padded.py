"""Padding every input to one length, to show what that costs.

Services never need it: sequences run one at a time, so there is nothing to align.
"""

import numpy as np

from winnow.inference.session import Inputs, Outputs, Session
from winnow.inference.stop import Stop


class PaddedSession:
    """A session whose inputs are filled up to `length` tokens, masked; longer ones stay."""

    def __init__(self, session: Session, length: int) -> None:
        self._session, self._length = session, length

    def run(self, inputs: Inputs, stop: Stop | None = None) -> Outputs:
        """The outputs of the real tokens."""
        tokens = inputs["input_ids"].shape[1]
        missing = max(self._length - tokens, 0)
        filled = {name: np.pad(values, ((0, 0), (0, missing))) for name, values in inputs.items()}
        padded = tokens + missing
        return [
            output[:, :tokens] if output.ndim > 1 and output.shape[1] == padded else output
            for output in self._session.run(filled, stop)
        ]
