"""Runs a head, which predicts labels, or labelled spans of tokens, from token states.

Each head has its own small session, since a server keeps a thousand of them. A head of 150 labels
takes 0.6 MB of memory, of which 0.36 MB is the model (`bench/head_memory.py` at commit 977ccf2).
Another 0.1 MB is weights that are repacked for the processor, which makes a run a third shorter.
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

_SMOKE_TEST_TOKENS = (0, 1, 6)
"""Lengths of the texts of a smoke test, without [CLS] and [SEP]."""
_BYTES_PER_MODEL_BYTE, _BYTES_PER_HEAD, _BYTES_PER_LABEL = 1.35, 110_000, 100
"""Estimates of an open head's memory, slightly above the measured values (`bench/head_memory.py`
at commit 977ccf2).
"""

FloatStates = NDArray[np.float32]
"""Token states of a text: [tokens + 2, width]."""


def estimate_memory(head: HeadManifest) -> int:
    """Estimates the bytes of memory that an open head takes."""
    model_bytes = round(head.model.bytes * _BYTES_PER_MODEL_BYTE)
    return model_bytes + _BYTES_PER_HEAD + _BYTES_PER_LABEL * len(head.labels)


class Head:
    """An open head. Thread-safe."""

    def __init__(self, manifest: HeadManifest, session: onnxruntime.InferenceSession) -> None:
        self.manifest, self._session = manifest, session

    def predict(self, states: FloatStates) -> Prediction:
        """Predicts the labels or spans of a text.

        Raises UnavailableError if the model fails on this text, or its logits are not finite.
        """
        try:
            logits = self.logits(states)
        except ArtefactError as error:
            raise UnavailableError(str(error)) from error
        if not np.isfinite(logits).all():
            raise UnavailableError(
                f"{self._name} returns scores that are not finite: publish it again, or return to "
                "an older version with `winnow heads rollback`"
            )
        if self.manifest.kind is Kind.TOKEN:
            return decode_spans(logits, self.manifest)
        return decode_labels(logits, self.manifest)

    def logits(self, states: FloatStates) -> Logits:
        """Runs the model; returns logits [labels], or [tokens + 2, labels] for a token head.

        Raises ArtefactError if the model fails, or returns another shape or type.
        """
        try:
            logits = self._session.run([OUTPUT], {INPUT: states})[0]
        except Exception as error:  # onnxruntime raises several unrelated types
            raise ArtefactError(f"{self._name} cannot be run: {shortened(str(error))}") from error
        labels = len(self.manifest.labels)
        expected = (len(states), labels) if self.manifest.kind is Kind.TOKEN else (labels,)
        if getattr(logits, "shape", None) != expected or logits.dtype != np.float32:
            raise ArtefactError(
                f"{self._name} returns {_describe(logits)}, but its manifest promises float32 "
                f"{list(expected)}"
            )
        values: Logits = logits
        return values

    def smoke_test(self) -> None:
        """Runs the head on dummy texts of several lengths, which also warms it up.

        Raises ArtefactError if the model fails, or its output differs from the manifest.
        """
        for tokens in _SMOKE_TEST_TOKENS:
            self.logits(np.zeros((tokens + 2, self.manifest.encoder.width), dtype=np.float32))

    @property
    def _name(self) -> str:
        return f"head {self.manifest.id} version {self.manifest.version}"


def open_head(artefact: HeadArtefact) -> Head:
    """Opens a head and runs a smoke test.

    Raises ArtefactError if its files are damaged, or its model does not match the manifest.
    """
    file = artefact.open_model()
    try:
        # opened by path: a session opened from bytes would keep the bytes and a copy
        session = onnxruntime.InferenceSession(
            str(file.link), _session_options(), providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime raises several unrelated types
        raise ArtefactError(
            f"{artefact.directory} cannot be opened as a model: {shortened(str(error))}"
        ) from error
    file.check()
    _check_signature(session, artefact)
    head = Head(artefact.manifest, session)
    head.smoke_test()
    return head


def _check_signature(session: onnxruntime.InferenceSession, artefact: HeadArtefact) -> None:
    inputs = [each.name for each in session.get_inputs()]
    outputs = [each.name for each in session.get_outputs()]
    if inputs != [INPUT] or OUTPUT not in outputs:
        raise ArtefactError(
            f"{artefact.directory} is not the model of a head: its inputs are "
            f"{shortened(', '.join(inputs))} and its outputs {shortened(', '.join(outputs))}, but "
            f"expected {INPUT} and {OUTPUT}"
        )


def _session_options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 4
    return options


def _describe(logits: object) -> str:
    if isinstance(logits, np.ndarray):
        return f"{logits.dtype} {list(logits.shape)}"
    return f"a {type(logits).__name__}"
