"""Running models: which runtime, and that every way of running says the same."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from doubling_model import doubling_model

from winnow.bundle import Bundle
from winnow.errors import ArtefactError, StoppedError
from winnow.inference.onnx import OnnxSession, check_on_gpu, providers
from winnow.inference.openvino import OpenVinoSession
from winnow.inference.options import InferenceOptions, Runtime
from winnow.inference.processor import cpu_features, multiplies_bytes_exactly
from winnow.inference.runtime import open_session, usable_runtimes
from winnow.inference.session import Inputs, Outputs, PaddedSession, Session, model_inputs
from winnow.inference.stop_signal import StopSignal
from winnow.settings.common import cores

AMX = frozenset({"avx512f", "amx_bf16"})
OUTPUTS = ["start_logits", "end_logits", "relevance_logit"]


ONNX, VINO = Runtime.ONNXRUNTIME, Runtime.OPENVINO


@pytest.mark.parametrize(
    ("asked", "precision", "features", "installed", "expected"),
    [
        (Runtime.AUTO, "int8", AMX, True, (ONNX,)),
        (Runtime.AUTO, "fp32", AMX, True, (VINO, ONNX)),
        (Runtime.AUTO, "fp32", AMX, False, (ONNX,)),
        (Runtime.AUTO, "fp32", frozenset({"avx2"}), True, (ONNX, VINO)),
        (Runtime.OPENVINO, "fp32", frozenset(), True, (VINO,)),
        (Runtime.ONNXRUNTIME, "fp32", AMX, True, (ONNX,)),
        (Runtime.CUDA, "fp32", AMX, True, (Runtime.CUDA,)),
    ],
)
def test_the_runtimes_follow_the_processor_and_the_bundle(
    asked: Runtime,
    precision: str,
    features: frozenset[str],
    installed: bool,
    expected: tuple[Runtime, ...],
) -> None:
    assert usable_runtimes(asked, precision, features, installed) == expected


def test_openvino_is_refused_what_it_is_slow_at() -> None:
    with pytest.raises(ArtefactError, match="float bundle"):
        usable_runtimes(Runtime.OPENVINO, "int8", AMX, True)


def test_a_gpu_is_refused_what_it_has_no_kernels_for() -> None:
    with pytest.raises(ArtefactError, match="float models only"):
        usable_runtimes(Runtime.CUDA, "int8", AMX, True)


def test_a_gpu_comes_first_where_it_is_wanted_and_the_processor_helps_out() -> None:
    cpu, both = ["CPUExecutionProvider"], ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert providers(False, both) == providers(False, cpu) == cpu
    first, last = providers(True, both)
    assert first[0] == "CUDAExecutionProvider"
    assert last == "CPUExecutionProvider"
    check_on_gpu(both)


def test_without_a_gpu_it_is_said_what_to_install() -> None:
    with pytest.raises(ArtefactError, match=r"it has CPUExecutionProvider; .*onnxruntime-gpu"):
        providers(True, ["CPUExecutionProvider"])
    with pytest.raises(ArtefactError, match=r"could not start on the GPU.*onnxruntime-gpu"):
        check_on_gpu(["CPUExecutionProvider"])


def test_features_are_read_where_the_system_tells_them(tmp_path: Path) -> None:
    told = tmp_path / "cpuinfo"
    told.write_text("processor\t: 0\nflags\t\t: fpu avx512f amx_bf16\n")
    assert cpu_features(told) == {"fpu", "avx512f", "amx_bf16"}
    assert cpu_features(tmp_path / "none") == frozenset()


@pytest.mark.parametrize(
    ("features", "exact"),
    [
        ({"avx2", "avx512f", "avx512bw"}, False),
        ({"avx2", "avx512f", "avx512_vnni"}, True),
        ({"avx2", "avx_vnni"}, True),
        ({"avx512f", "amx_int8"}, True),
        (set(), False),
    ],
)
def test_the_slower_exact_kernel_is_needed_only_without_vnni(
    features: set[str], exact: bool
) -> None:
    assert multiplies_bytes_exactly(frozenset(features)) is exact


class Echo:
    """Returns the ids as logits, and their number as relevance."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def run(self, inputs: Inputs, stop: StopSignal | None = None) -> Outputs:
        ids = inputs["input_ids"].astype(np.float32)
        self.seen.append(ids.shape[1])
        return [ids, np.array([inputs["attention_mask"].sum()], dtype=np.float32)]


def test_padding_fills_inputs_and_is_cut_from_outputs() -> None:
    echo = Echo()
    logits, counted = PaddedSession(echo, 8).run(model_inputs([5, 6, 7], [0, 0, 1]))
    assert echo.seen == [8]
    np.testing.assert_array_equal(logits, [[5, 6, 7]])
    assert counted == [3]


def test_what_is_longer_than_the_padding_stays() -> None:
    echo = Echo()
    PaddedSession(echo, 2).run(model_inputs([5, 6, 7], [0, 0, 1]))
    assert echo.seen == [3]


def test_products_of_bytes_are_exact_on_every_processor(tmp_path: Path) -> None:
    """Without VNNI two products of the largest bytes would saturate a sum of 16 bits."""
    helper, kinds = onnx.helper, onnx.TensorProto
    weights = helper.make_tensor("weights", kinds.INT8, [32, 16], np.full(32 * 16, 127))
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["bytes", "weights"], ["product"])],
        "product",
        [helper.make_tensor_value_info("bytes", kinds.UINT8, [1, 32])],
        [helper.make_tensor_value_info("product", kinds.INT32, [1, 16])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "product.onnx").write_bytes(model.SerializeToString())
    session = OnnxSession(tmp_path / "product.onnx", ["product"])
    (product,) = session.run({"bytes": np.full((1, 32), 255, np.uint8)})
    assert product.tolist() == [[32 * 255 * 127] * 16]


FIRST_RUNS = """
import os, sys, threading
from pathlib import Path
from winnow.inference.openvino import OpenVinoSession
from winnow.inference.session import model_inputs

session = OpenVinoSession(Path(sys.argv[1]), ["doubled"], bfloat16=False, runs=4)
together = threading.Barrier(8)

def run():
    together.wait()
    session.run(model_inputs([1, 2, 3], [0, 0, 0]))

threads = [threading.Thread(target=run, daemon=True) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
os._exit(any(thread.is_alive() for thread in threads))
"""


def test_the_first_runs_of_a_process_may_come_from_many_threads_at_once(float_model: Path) -> None:
    """Two of three such processes hung for ever before numpy was met at opening."""
    for _ in range(3):
        command = [sys.executable, "-c", FIRST_RUNS, str(float_model)]
        assert subprocess.run(command, check=False).returncode == 0


def test_a_float_model_says_the_same_in_both_runtimes_padded_or_not(float_model: Path) -> None:
    inputs = model_inputs([3, 1, 4, 1, 5], [0] * 5)
    plain = OnnxSession(float_model, ["doubled"]).run(inputs)[0]
    other = OpenVinoSession(float_model, ["doubled"], bfloat16=False).run(inputs)[0]
    padded = open_session(float_model, ["doubled"], "fp32", InferenceOptions(pad_to=9)).run(inputs)[
        0
    ]
    np.testing.assert_allclose(other, plain)
    np.testing.assert_allclose(padded, plain)


@pytest.mark.parametrize("session", [OnnxSession, partial(OpenVinoSession, bfloat16=False)])
def test_a_model_without_an_output_is_refused_by_name(
    session: Callable[[Path, list[str]], Session], float_model: Path
) -> None:
    with pytest.raises(ArtefactError, match="no output relevance_logit"):
        session(float_model, ["relevance_logit"])


@pytest.mark.parametrize("session", [OnnxSession, partial(OpenVinoSession, bfloat16=False)])
def test_what_is_no_model_is_refused(
    session: Callable[[Path, list[str]], Session], tmp_path: Path
) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ArtefactError, match="cannot be opened"):
        session(tmp_path / "model.onnx", ["doubled"])


def test_an_openvino_that_cannot_be_imported_is_an_error_that_says_so(
    float_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "openvino"
    broken.mkdir()
    (broken / "__init__.py").write_text('raise ImportError("libtbb.so.12: no such file")')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "openvino", raising=False)
    with pytest.raises(ArtefactError, match=r"OpenVINO cannot be imported: libtbb\.so\.12"):
        OpenVinoSession(float_model, ["doubled"], bfloat16=False)


def test_a_whole_reader_runs_with_every_lever(whole: Bundle) -> None:
    inputs = model_inputs(list(range(1000, 1040)), [0] * 40)
    exact = open_session(whole.reader, OUTPUTS, "int8").run(inputs)
    spread = open_session(whole.reader, OUTPUTS, "int8", InferenceOptions(intra_op_threads=2)).run(
        inputs
    )
    for one, other in zip(exact, spread, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)


ALLOCATOR = Path(__file__).parent.parent / "bump_allocator.c"
COMPILES = """
import sys
from pathlib import Path
from winnow.inference.openvino import OpenVinoSession
OpenVinoSession(Path(sys.argv[1]), ["doubled"], bfloat16=False)
print("compiled")
"""


def test_openvino_runs_beside_an_allocator_that_is_preloaded(tmp_path: Path) -> None:
    """Training is told to preload jemalloc, and `winnow models build` ends with OpenVINO.

    The allocator is one of ours, compiled as hnswlib is, so that none has to be installed.
    """
    library, graph = tmp_path / "allocator.so", doubling_model(tmp_path / "doubling.onnx")
    compiled = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(ALLOCATOR)]
    subprocess.run(compiled, check=True)
    ran = subprocess.run(
        [sys.executable, "-c", COMPILES, str(graph)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "compiled\n"), ran.stderr


def test_openvino_lets_as_many_runs_go_on_at_once_as_it_is_told(bundle: Bundle) -> None:
    session = OpenVinoSession(bundle.reader, OUTPUTS, bfloat16=False, runs=2)
    # it never has more streams than there are cores
    assert session._model.get_property("NUM_STREAMS") == min(2, cores())


def test_openvino_leaves_it_to_the_system_which_core_runs_what(float_model: Path) -> None:
    """Every process would choose the first cores, and nodes of one machine share these alone."""
    session = OpenVinoSession(float_model, ["doubled"], bfloat16=False)
    assert session._model.get_property("ENABLE_CPU_PINNING") is False


LONG = model_inputs([1000] * 512, [0] * 512)
SHORT = model_inputs(list(range(1000, 1020)), [0] * 20)


@pytest.mark.parametrize(
    "kind", [OnnxSession, partial(OpenVinoSession, bfloat16=False)], ids=["onnx", "openvino"]
)
def test_a_run_is_ended_from_another_thread_and_harms_no_later_one(
    kind: Callable[[Path, list[str]], Session], whole: Bundle
) -> None:
    session, stop = kind(whole.reader, OUTPUTS), StopSignal()
    before = session.run(SHORT)
    begun = threading.Event()

    def run_again_and_again() -> None:
        while True:
            begun.set()
            session.run(LONG, stop)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_again_and_again)
        assert begun.wait(60)
        stop.set()
        with pytest.raises(StoppedError):
            running.result(60)
        after = pool.submit(session.run, SHORT, StopSignal()).result(60)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_run_that_fails_by_itself_was_not_stopped(whole: Bundle) -> None:
    with pytest.raises(Exception, match="input_ids") as caught:
        OnnxSession(whole.reader, OUTPUTS).run({}, StopSignal())
    assert not isinstance(caught.value, StoppedError)


@pytest.fixture
def float_model(tmp_path: Path) -> Path:
    return doubling_model(tmp_path / "model.onnx")
