"""Which candidates of a shard the front needs to see. Pure."""

import numpy as np
from numpy.typing import NDArray


def contenders(
    distances: NDArray[np.float32], hybrid_distance: NDArray[np.float32], passages: int
) -> list[int]:
    """Places of the hits that may be among the best `passages` of the candidates of all shards.

    A hit that so many others are nearer than, with and without words, cannot be: wherever it is a
    candidate they are, too, and they are better. It counts where the line between candidates and
    others is drawn, though, so the front is told every distance.
    """
    nearer = (distances[:, None] < distances) & (hybrid_distance[:, None] < hybrid_distance)
    return [int(place) for place in np.flatnonzero(nearer.sum(0) < passages)]
