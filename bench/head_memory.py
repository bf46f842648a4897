"""Memory that one more head takes, against that of a whole encoder.

    python -m bench.head_memory [--heads 200] [--rounds 5] [--bar 99] [--json]

Makes a head as `winnow models train-head` does, with weights that mean nothing: attention and
maximum over 384 values of each token, a hidden layer of 384, 150 labels, int8. Opens it again and
again in a fresh process, runs each one, and takes the growth of resident memory (VmRSS, Linux) by
round. A whole encoder is measured in the same way, in processes of its own. Exits with 1 if a head
saves less than `--bar` percent of a whole encoder.
"""

import argparse
import gc
import json
import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from winnow.bundle import default_bundle, load_bundle
from winnow.heads.artefact import load_head
from winnow.heads.head import memory_of, open_head
from winnow.heads.manifest import INPUT, OUTPUT
from winnow.heads.writing import write_head
from winnow.inference.encoder import open_question_encoder
from winnow.text.tokenizer import Tokenizer

_WIDTH, _HIDDEN, _LABELS, _TOKENS = 384, 384, 150, 15
_THOUSAND = 1_000
_ENCODERS = 3
"""Processes that each open one."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of resident memory."""

    median: float
    least: float
    most: float


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.head_memory", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--heads", type=int, default=200, help="to open in all")
    parser.add_argument("--rounds", type=int, default=5, help="that they are opened in")
    parser.add_argument("--bar", type=float, default=99.0, help="least percent to save")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        _write(directory)
        manifest = load_head(directory).manifest
        head = _spread(_apart(_heads, directory, options.heads, options.rounds))
    encoder = _spread([_apart(_encoder) for _ in range(_ENCODERS)])
    saved = 100 * (1 - head.median / encoder.median)
    ring = encoder.median + _THOUSAND * head.median
    found = {
        "file_bytes": manifest.model.bytes,
        "head": asdict(head),
        "estimate": memory_of(manifest),
        "encoder": asdict(encoder),
        "saved_percent": saved,
        "thousand_saved_percent": 100 * (1 - ring / (_THOUSAND * encoder.median)),
    }
    print(json.dumps(found, indent=2) if options.json else _words(found))
    return int(saved < options.bar)


def _words(found: dict[str, Any]) -> str:
    def kilobytes(memory: dict[str, float]) -> str:
        low, high = memory["least"] / 1e3, memory["most"] / 1e3
        return f"{memory['median'] / 1e3:,.0f} kB ({low:,.0f} to {high:,.0f})"

    return "\n".join(
        [
            f"one more head, of {found['file_bytes'] / 1e3:,.0f} kB: {kilobytes(found['head'])}",
            f"counted for it by winnow.heads.head.memory_of: {found['estimate'] / 1e3:,.0f} kB",
            f"a whole encoder: {kilobytes(found['encoder'])}",
            f"a head takes {found['saved_percent']:.2f} % less than a whole encoder",
            f"{_THOUSAND} of them on one encoder: {found['thousand_saved_percent']:.2f} % less",
        ]
    )


def _heads(directory: Path, heads: int, rounds: int) -> list[float]:
    """Bytes for each head, by round. Some come before, for what the first ones need."""
    artefact = load_head(directory)
    states = np.random.default_rng(0).normal(0, 1, (_TOKENS, _WIDTH)).astype(np.float32)
    kept = []

    def opened(count: int) -> float:
        gc.collect()
        before = _resident()
        for _ in range(count):
            kept.append(open_head(artefact))
            kept[-1].predict(states)
        gc.collect()
        return (_resident() - before) / count

    each = max(heads // rounds, 1)
    opened(min(each, 20))
    return [opened(each) for _ in range(rounds)]


def _encoder() -> float:
    """Bytes that an encoder takes which has run, beside the libraries."""
    bundle = load_bundle(default_bundle())
    special = Tokenizer(bundle.tokenizer).special
    gc.collect()
    before = _resident()
    encoder = open_question_encoder(bundle, special, states=True)
    encoder.with_states([_THOUSAND] * _TOKENS)
    gc.collect()
    return _resident() - before


def _apart(work: Callable[..., Any], *arguments: object) -> Any:
    """The result of `work` in a fresh process, whose memory nobody else has used."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def _resident() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("the kernel says nothing of resident memory")


def _spread(values: list[float]) -> Memory:
    return Memory(statistics.median(values), min(values), max(values))


def _write(directory: Path) -> None:
    fields = {
        "id": "measured",
        "version": 1,
        "kind": "sequence",
        "labels": [f"label {number}" for number in range(_LABELS)],
        "encoder": {"name": "none", "fingerprint": "0", "width": _WIDTH},
    }
    write_head(directory, fields, _model())


def _model() -> bytes:
    random = np.random.default_rng(0)
    constants: dict[str, Any] = {
        "query": random.normal(0, 1, (_WIDTH, 1)).astype(np.float32),
        "axis": np.array([0], np.int64),
        "flat": np.array([-1], np.int64),
    }
    nodes = [
        helper.make_node("MatMul", [INPUT, "query"], ["weights"]),
        helper.make_node("Softmax", ["weights"], ["shares"], axis=0),
        helper.make_node("Mul", [INPUT, "shares"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "axis"], ["attended"]),
        helper.make_node("ReduceMax", [INPUT, "axis"], ["greatest"]),
        helper.make_node("Concat", ["attended", "greatest"], ["pooled"], axis=1),
        *_linear("pooled", "hidden", 2 * _WIDTH, _HIDDEN, constants, random),
        helper.make_node("Relu", ["hidden"], ["active"]),
        *_linear("active", "row", _HIDDEN, _LABELS, constants, random),
        helper.make_node("Reshape", ["row", "flat"], [OUTPUT]),
    ]
    graph = helper.make_graph(
        nodes,
        "head",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["tokens", _WIDTH])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [_LABELS])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", 20)]
    model: bytes = helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
    return model


def _linear(
    given: str,
    made: str,
    inputs: int,
    outputs: int,
    constants: dict[str, Any],
    random: np.random.Generator,
) -> list[Any]:
    """A layer as dynamic quantisation leaves it: int8 weights, activations made int8 by run."""
    constants |= {
        f"{made}.w": random.integers(-127, 128, (inputs, outputs)).astype(np.int8),
        f"{made}.ws": np.array(0.001, np.float32),
        f"{made}.wz": np.array(0, np.int8),
        f"{made}.b": random.normal(0, 1, outputs).astype(np.float32),
    }
    quantised = [f"{made}.q", f"{made}.s", f"{made}.z"]
    weights = [quantised[0], f"{made}.w", quantised[2], f"{made}.wz"]
    return [
        helper.make_node("DynamicQuantizeLinear", [given], quantised),
        helper.make_node("MatMulInteger", weights, [f"{made}.i"]),
        helper.make_node("Cast", [f"{made}.i"], [f"{made}.f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [quantised[1], f"{made}.ws"], [f"{made}.scale"]),
        helper.make_node("Mul", [f"{made}.f", f"{made}.scale"], [f"{made}.product"]),
        helper.make_node("Add", [f"{made}.product", f"{made}.b"], [made]),
    ]


if __name__ == "__main__":
    sys.exit(main())
