"""Encoding the passages of a build by workers of a Ray cluster."""

import contextlib
from collections.abc import Iterator

from winnow.bundle import Bundle
from winnow.content_node.indexing.engine import ENCODING, open_encoder
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.indexing.workers.cluster import check_ray, cluster
from winnow.content_node.indexing.workers.crew import RayCrew
from winnow.content_node.indexing.workers.piece import Came, EncodedBatch, PassageBatch, piece_of
from winnow.content_node.indexing.workers.sharing import share_out
from winnow.content_node.indexing.workers.worker import encode_piece, recipe_of
from winnow.settings.common import cores

PIECE = 32
"""Passages that are sent at once: some tenths of a second of work."""
_SAMPLE = 2
"""Passages that every worker has to encode as this machine does before it is given any."""
_ROOM = 128 << 20
"""Bytes for what is sent to workers, beside the model."""


class RayEngine:
    """Workers of a Ray cluster that runs already, or of one that is started for a build."""

    def __init__(self, workers: int | None = None, address: str = "") -> None:
        """`workers`: None for one a core. `address`: empty to start Ray on this machine.

        Raises:
            WinnowError: there is no Ray here, or it cannot be reached so.

        """
        check_ray(address)
        self._workers, self._address = workers, address

    def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
        """Stores a vector for every passage that has none yet.

        Raises:
            UnavailableError: Ray cannot be used, or every worker is lost.
            IdentityError: a worker encodes otherwise than this machine.

        """
        progress.start("starting Ray", 1)
        sample = next(_pieces(staging, _SAMPLE), None)
        if sample is None:
            return
        expected = encode_piece(open_encoder(bundle), sample)
        recipe = recipe_of(bundle)
        here = self._workers or cores()
        with cluster(self._address, here, _ROOM + 2 * recipe.model.nbytes) as ray:
            size = self._workers or max(int(ray.cluster_resources().get("CPU", 0)), 1)
            with contextlib.closing(RayCrew(ray, size, recipe, (sample, expected))) as crew:
                _store(staging, crew, progress)


def _store(staging: Staging, crew: RayCrew, progress: BuildListener) -> None:
    begun = False
    for event in share_out(_pieces(staging, PIECE), crew):
        match event:
            case Came() if not begun:
                begun = True
                progress.advance(1)
                progress.start(ENCODING, *staging.counts())
            case EncodedBatch():
                staging.encoded(list(zip(event.piece.rows, event.vectors, strict=True)))
                progress.advance(len(event.piece.rows))
            case _:
                pass


def _pieces(staging: Staging, passages: int) -> Iterator[PassageBatch]:
    return map(piece_of, staging.pending(passages))
