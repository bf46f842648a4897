"""Encodes the passages of a build by tasks of a Ray cluster, each on one core.

Ray distributes the tasks, and repeats the tasks of lost workers. A worker needs only the same
version of `winnow-qa`; the model is sent to it.
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
from winnow.content_node.indexing.ray_cluster import check_ray, open_cluster
from winnow.content_node.indexing.staging import Staging
from winnow.errors import IdentityError, UnavailableError, WinnowError
from winnow.files.opened import verify
from winnow.inference.encoder import open_passage_encoder
from winnow.passages.encoding import PassageEncoder
from winnow.settings.common import cores
from winnow.text.tokenizer import SpecialTokens, Tokenizer

TokenIds = tuple[int, ...]
Batch = Sequence[tuple[int, TokenIds, TokenIds]]
"""The passages of a task: sequence number, token ids of the title, token ids of the text."""
Vectors = NDArray[np.float32]
"""[passages, dimension]"""
_TASK_PASSAGES = 32
"""Number of passages of a task: some tenths of a second of work."""
_TASKS_PER_CORE = 2
"""Number of tasks in flight for each core, so that no core waits for its next task."""
_MAX_RETRIES = 3
"""How often Ray repeats a task whose worker was lost."""
_SAMPLE_PASSAGES = 2
"""Number of passages that every worker first encodes, to compare the vectors with this machine's.
"""
_OBJECT_STORE_BYTES = 128 << 20
"""Memory for objects sent to workers, in addition to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerModel:
    """The passage encoder that is sent to workers, and a sample to check their vectors."""

    build: str
    """A random id of the build. Values with the same id are equal."""
    manifest: Manifest = field(compare=False)
    special: SpecialTokens = field(compare=False)
    model: NDArray[np.uint8] = field(compare=False)
    """The bytes of the passage encoder's file."""
    sample: Batch = field(compare=False)
    expected: Vectors = field(compare=False)
    """The vectors of the sample, as this machine encodes it."""


class RayEngine:
    """Encodes passages in a running Ray cluster, or in a cluster that is started for the build."""

    def __init__(self, workers: int | None = None, address: str = "") -> None:
        """`workers`: None for one per core. `address`: empty to start Ray on this machine.

        Raises:
            WinnowError: Ray is not installed, or there is no cluster at the address.

        """
        check_ray(address)
        self._workers, self._address = workers, address

    def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
        """Stores a vector for every passage that has none yet.

        Raises:
            UnavailableError: Ray cannot be used, or workers were lost repeatedly.
            IdentityError: the vectors of a worker differ from those of this machine.

        """
        progress.start("starting Ray", 1)
        sample = next(staging.pending(_SAMPLE_PASSAGES), None)
        if sample is None:
            return
        worker_model = make_worker_model(bundle, sample)
        memory = _OBJECT_STORE_BYTES + 2 * worker_model.model.nbytes
        with open_cluster(self._address, self._workers or cores(), memory) as ray:
            progress.advance(1)
            progress.start(ENCODING, *staging.counts())
            # in a shared cluster, which may have more cores, the tasks in flight limit the workers
            shared = bool(self._address and self._workers)
            workers = self._workers or max(int(ray.cluster_resources().get("CPU", 0)), 1)
            max_tasks = workers if shared else _TASKS_PER_CORE * workers
            batches = staging.pending(_TASK_PASSAGES)
            for batch, vectors in encode_batches(ray, worker_model, batches, max_tasks):
                rows = [row for row, _, _ in batch]
                staging.store_vectors(list(zip(rows, vectors, strict=True)))
                progress.advance(len(batch))


def make_worker_model(bundle: Bundle, sample: Batch) -> WorkerModel:
    """Returns the model that is sent to workers. Of the bundle's files it has only the encoder."""
    return WorkerModel(
        build=uuid4().hex,
        manifest=bundle.manifest,
        special=Tokenizer(bundle.tokenizer).special,
        model=np.fromfile(bundle.passage_encoder, np.uint8),
        sample=sample,
        expected=_encode_batch(open_encoder(bundle), sample),
    )


def encode_batches(
    ray: Any, worker_model: WorkerModel, batches: Iterator[Batch], max_tasks: int
) -> Iterator[tuple[Batch, Vectors]]:
    """Yields each batch with its vectors, in the order of completion.

    At most `max_tasks` tasks are in flight. After an error, these tasks end with the connection to
    Ray. They are not cancelled: `ray.cancel` aborts this process if a task ends at the same moment
    (ray 2.60, "Tried to complete task that was not pending").

    Raises:
        UnavailableError: workers were lost repeatedly.
        WinnowError: the error of a worker.

    """
    task = ray.remote(num_cpus=1, max_retries=_MAX_RETRIES)(encode_batch)
    sent_model = ray.put(worker_model)
    in_flight: dict[Any, Batch] = {}
    while True:
        for batch in islice(batches, max_tasks - len(in_flight)):
            in_flight[task.remote(sent_model, batch)] = batch
        if not in_flight:
            return
        (done, *_), _ = ray.wait(list(in_flight), num_returns=1)
        yield in_flight.pop(done), _vectors_of(ray, done)


def _vectors_of(ray: Any, task: Any) -> Vectors:
    """Returns the vectors of a finished task; raises its error."""
    try:
        vectors: Vectors = ray.get(task)
    except ray.exceptions.RayTaskError as error:
        # the text of RayTaskError has the stack trace of the worker
        raise error.cause if isinstance(error.cause, WinnowError) else error from error
    except ray.exceptions.RayError as error:
        reason = next(reversed(str(error).strip().splitlines()), "").strip()
        raise UnavailableError(f"Ray lost workers repeatedly; last reason: {reason}") from error
    return vectors


def encode_batch(worker_model: WorkerModel, batch: Batch) -> Vectors:
    """Encodes a batch in a worker.

    Raises:
        ArtefactError: the worker cannot open the model, or the model was damaged in transfer.
        IdentityError: the vectors of the worker differ from those of the build's machine.

    """
    return _encode_batch(_open_encoder(worker_model), batch)


@lru_cache(maxsize=1)
def _open_encoder(worker_model: WorkerModel) -> PassageEncoder:
    """Opens the encoder of a build in the first task of a worker, and checks its vectors."""
    manifest = worker_model.manifest
    with tempfile.TemporaryDirectory(prefix="winnow-") as directory:
        bundle = Bundle(Path(directory), manifest)
        # a model is opened from a file, which is not needed afterwards
        bundle.passage_encoder.parent.mkdir(parents=True, exist_ok=True)
        worker_model.model.tofile(bundle.passage_encoder)
        entry = manifest.files[manifest.encoder.passage]
        verify(bundle.passage_encoder, entry.sha256, entry.bytes)
        model = open_passage_encoder(bundle, worker_model.special)
    encoder = PassageEncoder(model, manifest.encoder)
    if not np.array_equal(_encode_batch(encoder, worker_model.sample), worker_model.expected):
        raise IdentityError(
            f"a worker on {socket.gethostname()} encodes differently from this machine: use "
            "machines with the same kind of processor, onnxruntime and OpenVINO"
        )
    return encoder


def _encode_batch(encoder: PassageEncoder, batch: Batch) -> Vectors:
    return np.stack([encoder.encode(title, text) for _, title, text in batch])
