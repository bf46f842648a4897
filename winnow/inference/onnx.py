"""Models in ONNX Runtime.

One intra-op thread by default and no spinning: parallelism comes from reading several passages at
once, and two sessions that each own the machine fight over it (onnxruntime #10273, #17011).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import onnxruntime

from winnow.errors import ArtefactError, StoppedError
from winnow.inference.inner_output import with_output
from winnow.inference.session import Inputs, Outputs
from winnow.inference.stop import Stop


class OnnxSession:
    """A model in ONNX Runtime on the CPU."""

    def __init__(
        self, path: Path, outputs: Sequence[str], intra_op_threads: int = 1, inner: str = ""
    ) -> None:
        """Opens `path`; `inner` names a value inside the model that becomes an output, too.

        Raises:
            ArtefactError: it is not a model, or lacks one of `outputs`.

        """
        try:
            # a path can be opened by a part at a time
            model = with_output(path.read_bytes(), inner) if inner else str(path)
            self._session = onnxruntime.InferenceSession(
                model, _options(intra_op_threads), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises several unrelated types
            raise ArtefactError(f"{path} cannot be opened as a model: {error}") from error
        self._outputs = list(outputs)
        present = {output.name for output in self._session.get_outputs()}
        if missing := set(outputs) - present:
            raise ArtefactError(f"{path} has no output {', '.join(sorted(missing))}")

    def run(self, inputs: Inputs, stop: Stop | None = None) -> Outputs:
        """All outputs, in the order asked for at construction; ends between operators.

        Raises:
            StoppedError: `stop` was set before they were there.

        """
        stop = stop or Stop()
        options = onnxruntime.RunOptions()
        try:
            with stop.ending(partial(setattr, options, "terminate", True)):
                return list(self._session.run(self._outputs, dict(inputs), options))
        except Exception as error:  # its type is private
            if stop.is_set:
                raise StoppedError("the run was ended") from error
            raise


def _options(intra_op_threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = intra_op_threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # the arena would keep what the longest input took, for ever (onnxruntime #11627)
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return options
