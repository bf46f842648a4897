"""Compares exported graphs with their PyTorch networks and with each other."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from models.network.export import READER_OUTPUTS
from models.network.split_reader import (
    LOWER_INPUTS,
    LOWER_OUTPUTS,
    UPPER_INPUTS,
    SplitReader,
    quantise_states,
)
from winnow.inference.onnx import OnnxSession
from winnow.inference.session import model_inputs

_MAX_TOKENS = 256


def largest_difference(
    network: nn.Module, graph: Path, outputs: Sequence[str], tokenizer: Path, texts: Sequence[str]
) -> float:
    """Returns the largest absolute difference of any output. Each text is a separate run."""
    session, tokenise = OnnxSession(graph, list(outputs)), _open_tokenizer(tokenizer)
    network.eval()
    difference = 0.0
    for text in texts:
        ids = tokenise(text)
        half = len(ids) // 2
        inputs = model_inputs(ids, [0] * half + [1] * (len(ids) - half))
        with torch.no_grad():
            expected = network(*(torch.from_numpy(value) for value in inputs.values()))
        expected = expected if isinstance(expected, tuple) else (expected,)
        difference = max(difference, _max_difference(expected, session.run(inputs)))
    return difference


def split_difference(
    network: SplitReader, lower: Path, upper: Path, tokenizer: Path, texts: Sequence[str]
) -> float:
    """Returns the largest absolute difference of a split reader's two graphs.

    Each text is split into two segments. The upper layers of network and graph get the same input,
    because rounding to int8 could enlarge a tiny difference of states to a whole level.
    """
    lower_session = OnnxSession(lower, list(LOWER_OUTPUTS))
    upper_session = OnnxSession(upper, list(READER_OUTPUTS))
    tokenise = _open_tokenizer(tokenizer)
    network.eval()
    difference = 0.0
    for text in texts:
        ids = torch.tensor([tokenise(text)])
        segments = ids.tensor_split(2, dim=1)
        with torch.no_grad():
            states = [
                network.lower(segment, number, torch.ones_like(segment))
                for number, segment in enumerate(segments)
            ]
            levels, scales = quantise_states(states[1])
            joined = torch.cat([states[0], levels * scales], 1)
            start, end, relevance = network.read(network.upper(joined, torch.ones_like(ids))[-1])
        for number, segment in enumerate(segments):
            inputs = _named_arrays(LOWER_INPUTS, (segment, torch.full_like(segment, number)))
            outputs = lower_session.run(inputs)
            difference = max(difference, _max_difference(states[number : number + 1], outputs))
        outputs = upper_session.run(
            _named_arrays(UPPER_INPUTS, (states[0], levels.to(torch.int8), scales))
        )
        first = segments[0].shape[1]
        expected = (start[:, first:], end[:, first:], relevance)
        difference = max(difference, _max_difference(expected, outputs))
    return difference


def mean_cosine(first: Path, second: Path, tokenizer: Path, texts: Sequence[str]) -> float:
    """Returns the mean cosine between two encoders' vectors of the same texts."""
    tokenise = _open_tokenizer(tokenizer)
    sessions = [OnnxSession(path, ["embedding"]) for path in (first, second)]
    cosines = []
    for text in texts:
        ids = tokenise(text)
        vectors = [session.run(model_inputs(ids, [0] * len(ids)))[0][0] for session in sessions]
        cosines.append(float(vectors[0] @ vectors[1]))
    return float(np.mean(cosines))


def _open_tokenizer(path: Path) -> Callable[[str], list[int]]:
    """Returns a function from a text to at most `_MAX_TOKENS` token ids."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    return lambda text: list(tokenizer.encode(text).ids)


def _named_arrays(names: Sequence[str], values: Sequence[Tensor]) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in zip(names, values, strict=True)}


def _max_difference(expected: Sequence[Tensor], outputs: Sequence[np.ndarray]) -> float:
    """Returns the largest absolute difference, or infinity if any is NaN.

    `max` alone would ignore NaN.
    """
    pairs = zip(expected, outputs, strict=True)
    differences = [float(np.abs(want.numpy() - output).max()) for want, output in pairs]
    return max(each if math.isfinite(each) else math.inf for each in differences)
