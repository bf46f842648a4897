"""Encoding the passages of a build by tasks of a Ray cluster, one core each.

Ray shares the tasks out, and runs the tasks of a lost worker again. A worker needs the same
`winnow-qa`: all else is sent to it.
"""

import socket
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.bundle.manifest import Manifest
from winnow.content_node.indexing.engine import ENCODING, open_encoder
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.indexing.ray_cluster import check_ray, cluster
from winnow.content_node.indexing.staging import Staging
from winnow.errors import IdentityError, UnavailableError, WinnowError
from winnow.files.opened import verify
from winnow.inference.encoder import open_passage_encoder
from winnow.passages.encoding import PassageEncoder
from winnow.settings.common import cores
from winnow.text.tokenizer import SpecialTokens, Tokenizer

TokenIds = tuple[int, ...]
Batch = Sequence[tuple[int, TokenIds, TokenIds]]
"""Passages that are encoded together: sequence number, and token ids of title and text."""
Vectors = NDArray[np.float32]
"""[passages, dimension]"""
_BATCH = 32
"""Passages of a task: some tenths of a second of work."""
_AHEAD = 2
"""Tasks for each core, so that the next one is there when one is done."""
_RETRIES = 3
"""Times that Ray runs a task again whose worker was lost."""
_SAMPLE = 2
"""Passages that every worker has to encode as this machine does before it encodes others."""
_ROOM = 128 << 20
"""Bytes for what is sent to workers, beside the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that a worker needs to encode as this process does."""

    build: str
    """The name of the build, by which recipes are compared."""
    manifest: Manifest = field(compare=False)
    special: SpecialTokens = field(compare=False)
    model: NDArray[np.uint8] = field(compare=False)
    """The bytes of the passage encoder's file."""
    sample: Batch = field(compare=False)
    expected: Vectors = field(compare=False)
    """The vectors that this machine makes of the sample."""


class RayEngine:
    """Encodes by a Ray cluster that runs already, or by one that is started for the build."""

    def __init__(self, workers: int | None = None, address: str = "") -> None:
        """`workers`: None for one a core. `address`: empty to start Ray on this machine.

        Raises:
            WinnowError: Ray is not installed, or there is no cluster at the address.

        """
        check_ray(address)
        self._workers, self._address = workers, address

    def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
        """Stores a vector for every passage that has none yet.

        Raises:
            UnavailableError: Ray cannot be used, or workers are lost again and again.
            IdentityError: a worker encodes otherwise than this machine.

        """
        progress.start("starting Ray", 1)
        sample = next(staging.pending(_SAMPLE), None)
        if sample is None:
            return
        recipe = recipe_of(bundle, sample)
        here = self._workers or cores()
        with cluster(self._address, here, _ROOM + 2 * recipe.model.nbytes) as ray:
            progress.advance(1)
            progress.start(ENCODING, *staging.counts())
            # a cluster that is shared may have more cores than workers that are wanted
            shared = bool(self._address and self._workers)
            size = self._workers or max(int(ray.cluster_resources().get("CPU", 0)), 1)
            most = size if shared else _AHEAD * size
            for batch, vectors in encoded(ray, recipe, staging.pending(_BATCH), most):
                rows = [row for row, _, _ in batch]
                staging.encoded(list(zip(rows, vectors, strict=True)))
                progress.advance(len(batch))


def recipe_of(bundle: Bundle, sample: Batch) -> Recipe:
    """What workers are sent of a bundle: of its files, the passage encoder alone."""
    return Recipe(
        build=uuid4().hex,
        manifest=bundle.manifest,
        special=Tokenizer(bundle.tokenizer).special,
        model=np.fromfile(bundle.passage_encoder, np.uint8),
        sample=sample,
        expected=_vectors(open_encoder(bundle), sample),
    )


def encoded(
    ray: Any, recipe: Recipe, batches: Iterator[Batch], most: int
) -> Iterator[tuple[Batch, Vectors]]:
    """Each batch with its vectors, as they are done; `most` tasks are in hand.

    Raises:
        UnavailableError: workers are lost again and again.
        WinnowError: as a worker says.

    """
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(encode_batch)
    sent = ray.put(recipe)
    in_hand: dict[Any, Batch] = {}
    try:
        while True:
            for batch in islice(batches, most - len(in_hand)):
                in_hand[task.remote(sent, batch)] = batch
            if not in_hand:
                return
            (done, *_), _ = ray.wait(list(in_hand), num_returns=1)
            yield in_hand.pop(done), _result(ray, done)
    finally:
        for each in in_hand:
            ray.cancel(each, force=True)


def _result(ray: Any, done: Any) -> Vectors:
    try:
        vectors: Vectors = ray.get(done)
    except ray.exceptions.RayTaskError as error:
        # what Ray makes of the worker's error has its stack in its text
        raise error.cause if isinstance(error.cause, WinnowError) else error from error
    except ray.exceptions.RayError as error:
        reason = next(reversed(str(error).strip().splitlines()), "").strip()
        raise UnavailableError(
            f"workers are lost again and again, the last one: {reason}"
        ) from error
    return vectors


def encode_batch(recipe: Recipe, batch: Batch) -> Vectors:
    """In a worker: the vectors of a batch.

    Raises:
        ArtefactError: the model cannot be opened there, or was damaged on its way.
        IdentityError: the worker encodes otherwise than the machine of the build.

    """
    return _vectors(_opened(recipe), batch)


@lru_cache(maxsize=1)
def _opened(recipe: Recipe) -> PassageEncoder:
    """The encoder of a build, opened by the first task of a worker."""
    manifest = recipe.manifest
    with tempfile.TemporaryDirectory(prefix="winnow-") as directory:
        bundle = Bundle(Path(directory), manifest)
        # models are opened by their path; an open one does without its file
        bundle.passage_encoder.parent.mkdir(parents=True, exist_ok=True)
        recipe.model.tofile(bundle.passage_encoder)
        entry = manifest.files[manifest.encoder.passage]
        verify(bundle.passage_encoder, entry.sha256, entry.bytes)
        model = open_passage_encoder(bundle, recipe.special)
    encoder = PassageEncoder(model, manifest.encoder)
    if not np.array_equal(_vectors(encoder, recipe.sample), recipe.expected):
        raise IdentityError(
            f"a worker on {socket.gethostname()} encodes otherwise than this machine: use machines "
            "with the same kind of processor, onnxruntime and OpenVINO"
        )
    return encoder


def _vectors(encoder: PassageEncoder, batch: Batch) -> Vectors:
    return np.stack([encoder.encode(title, text) for _, title, text in batch])
