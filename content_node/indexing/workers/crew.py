"""Workers as actors of Ray, one core each.

Knows Ray's calls and errors; who does what is decided in `sharing`.
"""

from typing import Any

import numpy as np

from winnow.content_node.indexing.workers.piece import (
    Came,
    EncodedBatch,
    Event,
    Lost,
    PassageBatch,
    Vectors,
)
from winnow.content_node.indexing.workers.worker import Recipe, Worker
from winnow.errors import IdentityError, WinnowError


class RayCrew:
    """Workers of a Ray cluster. One that does not encode as this machine does is refused."""

    def __init__(
        self, ray: Any, size: int, recipe: Recipe, sample: tuple[PassageBatch, Vectors]
    ) -> None:
        """Asks for `size` workers; `sample` is a piece, and what this machine makes of it."""
        self._ray, self._expected = ray, sample[1]
        actor = ray.remote(num_cpus=1)(Worker)
        sent = ray.put(recipe)
        self._actors = [actor.remote() for _ in range(size)]
        self._calls: dict[Any, tuple[int, PassageBatch | None]] = {
            each.prepare.remote(sent, sample[0]): (number, None)
            for number, each in enumerate(self._actors)
        }

    @property
    def size(self) -> int:
        """How many there are, or will be: those that find no core free come later."""
        return len(self._actors)

    def give(self, worker: int, piece: PassageBatch) -> None:
        """Has a worker encode a piece, after those that it has in hand; returns at once."""
        self._calls[self._actors[worker].encode.remote(piece)] = worker, piece

    def next(self) -> Event:
        """Waits for what happens next.

        Raises:
            IdentityError: a worker encodes otherwise than this machine.
            WinnowError: a worker cannot open the model.

        """
        (call, *_), _ = self._ray.wait(list(self._calls), num_returns=1)
        worker, piece = self._calls.pop(call)
        try:
            reply = self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            raise _of_worker(error) from error
        except self._ray.exceptions.RayError as error:
            return self._lost(worker, piece, str(error))
        if piece is not None:
            return EncodedBatch(worker, piece, reply)
        self._check(*reply)
        return Came(worker)

    def close(self) -> None:
        """Ends every worker, whatever it does."""
        for each in self._actors:
            self._ray.kill(each)

    def _lost(self, worker: int, piece: PassageBatch | None, reason: str) -> Lost:
        """Whatever the worker had in hand is lost with it."""
        # it may only be out of reach
        self._ray.kill(self._actors[worker])
        calls = [call for call, (each, _) in self._calls.items() if each == worker]
        held = [piece, *(self._calls.pop(call)[1] for call in calls)]
        last = next(reversed(reason.strip().splitlines()), "").strip()
        return Lost(worker, tuple(each for each in held if each is not None), last)

    def _check(self, machine: str, vectors: Vectors) -> None:
        if not np.array_equal(vectors, self._expected):
            raise IdentityError(
                f"a worker on {machine} encodes otherwise than this machine: use machines with the "
                "same kind of processor, onnxruntime and OpenVINO"
            )


def _of_worker(error: Any) -> Exception:
    """The error that a worker raised; what Ray makes of it has its stack in its text."""
    cause: Exception = error.cause
    return cause if isinstance(cause, WinnowError) else error
