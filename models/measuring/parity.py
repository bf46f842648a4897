"""Whether an exported graph computes what PyTorch does."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from winnow.inference.onnx import OnnxSession
from winnow.inference.session import model_inputs


def largest_difference(
    network: nn.Module, graph: Path, outputs: Sequence[str], tokenizer: Path, texts: Sequence[str]
) -> float:
    """The largest absolute difference of any output over `texts`, one text a run."""
    session = OnnxSession(graph, list(outputs))
    words = Tokenizer.from_file(str(tokenizer))
    words.no_padding()
    words.enable_truncation(256)
    network.eval()
    worst = 0.0
    for text in texts:
        ids = words.encode(text).ids
        half = len(ids) // 2
        types = [0] * half + [1] * (len(ids) - half)
        inputs = model_inputs(ids, types)
        with torch.no_grad():
            expected = network(*(torch.from_numpy(value) for value in inputs.values()))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for want, got in zip(expected, session.run(inputs), strict=True):
            worst = max(worst, float(np.abs(want.numpy() - got).max()))
    return worst


def mean_cosine(first: Path, second: Path, tokenizer: Path, texts: Sequence[str]) -> float:
    """The mean cosine between two encoders' vectors of the same texts."""
    words = Tokenizer.from_file(str(tokenizer))
    words.no_padding()
    words.enable_truncation(256)
    sessions = [OnnxSession(path, ["embedding"]) for path in (first, second)]
    cosines = []
    for text in texts:
        ids = words.encode(text).ids
        vectors = [session.run(model_inputs(ids, [0] * len(ids)))[0][0] for session in sessions]
        cosines.append(float(vectors[0] @ vectors[1]))
    return float(np.mean(cosines))
