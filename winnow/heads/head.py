"""A head at work: token states to labels, or to spans of tokens.

One session a head, lean, since a server keeps a thousand of them: 0.6 MB for one of 150 labels, of
which its model is 0.36 (`bench/head_memory.py` at commit 977ccf2). Weights repacked for the
processor cost a tenth of a megabyte of that, and make a run a third shorter.
"""

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from winnow.domain.prediction import Prediction
from winnow.errors import ArtefactError, UnavailableError
from winnow.heads.artefact import HeadArtefact
from winnow.heads.labels import Logits, decode_labels
from winnow.heads.manifest import INPUT, OUTPUT, HeadManifest, Kind
from winnow.heads.spans import decode_spans
from winnow.quoting import shortened

_TRIAL_TOKENS = (0, 1, 6)
"""Of the texts that a head is tried on; [CLS] and [SEP] come on top."""
_PER_BYTE, _PER_HEAD, _PER_LABEL = 1.35, 110_000, 100
"""Bytes that an open head takes for each byte of its model, beside it, and for each label: a little
more than `python -m bench.head_memory` found at commit 977ccf2.
"""

FloatStates = NDArray[np.float32]
"""[tokens + 2, width]."""


def memory_of(head: HeadManifest) -> int:
    """Bytes that a head takes while it is open, by estimate."""
    return round(head.model.bytes * _PER_BYTE) + _PER_HEAD + _PER_LABEL * len(head.labels)


class Head:
    """An open head. Safe to use from several threads at once."""

    def __init__(self, manifest: HeadManifest, session: onnxruntime.InferenceSession) -> None:
        self.manifest, self._session = manifest, session

    def predict(self, states: FloatStates) -> Prediction:
        """What the head says of a text.

        Raises:
            UnavailableError: it cannot be run on this text, or its logits are not numbers.

        """
        try:
            logits = self.logits(states)
        except ArtefactError as error:
            raise UnavailableError(str(error)) from error
        if not np.isfinite(logits).all():
            raise UnavailableError(
                f"{self._name} gives scores that are not finite numbers: publish it again, or go "
                "back to an older version with `winnow heads rollback`"
            )
        if self.manifest.kind is Kind.TOKEN:
            return decode_spans(logits, self.manifest)
        return decode_labels(logits, self.manifest)

    def logits(self, states: FloatStates) -> Logits:
        """[labels], or [tokens + 2, labels] of a token head.

        Raises:
            ArtefactError: it cannot be run, or gives something else.

        """
        try:
            logits = self._session.run([OUTPUT], {INPUT: states})[0]
        except Exception as error:  # onnxruntime raises several unrelated types
            raise ArtefactError(f"{self._name} cannot be run: {_reason(error)}") from error
        labels = len(self.manifest.labels)
        expected = (len(states), labels) if self.manifest.kind is Kind.TOKEN else (labels,)
        found = getattr(logits, "shape", None)
        if found != expected or logits.dtype != np.float32:
            raise ArtefactError(
                f"{self._name} gives {_described(logits)}; its manifest promises float32 "
                f"{list(expected)}"
            )
        values: Logits = logits
        return values

    def try_out(self) -> None:
        """Runs it on made-up texts of several lengths, so that it is warm.

        Raises:
            ArtefactError: it cannot be run, or gives something else than the manifest promises.

        """
        for tokens in _TRIAL_TOKENS:
            self.logits(np.zeros((tokens + 2, self.manifest.encoder.width), dtype=np.float32))

    @property
    def _name(self) -> str:
        return f"head {self.manifest.id} version {self.manifest.version}"


def open_head(artefact: HeadArtefact) -> Head:
    """Opens a head, and tries it out.

    Raises:
        ArtefactError: its files are not what they should be, or its model does not do what the
            manifest promises.

    """
    file = artefact.model()
    try:
        # not its bytes: the session would keep them beside what it makes of them
        session = onnxruntime.InferenceSession(
            str(file.link), _lean(), providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime raises several unrelated types
        raise ArtefactError(
            f"{artefact.directory} cannot be opened as a model: {_reason(error)}"
        ) from error
    file.check()
    _check_ends(session, artefact)
    head = Head(artefact.manifest, session)
    head.try_out()
    return head


def _check_ends(session: onnxruntime.InferenceSession, artefact: HeadArtefact) -> None:
    inputs = [each.name for each in session.get_inputs()]
    outputs = [each.name for each in session.get_outputs()]
    if inputs != [INPUT] or OUTPUT not in outputs:
        raise ArtefactError(
            f"{artefact.directory} is no model of a head: it takes {shortened(', '.join(inputs))} "
            f"and gives {shortened(', '.join(outputs))}, not {INPUT} and {OUTPUT}"
        )


def _lean() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 4
    return options


def _reason(error: Exception) -> str:
    return shortened(str(error))


def _described(logits: object) -> str:
    if isinstance(logits, np.ndarray):
        return f"{logits.dtype} {list(logits.shape)}"
    return f"a {type(logits).__name__}"
