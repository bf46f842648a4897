"""Whether an exported graph computes what PyTorch does."""

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
    levels,
)
from winnow.inference.onnx import OnnxSession
from winnow.inference.session import model_inputs

_MOST_TOKENS = 256


def largest_difference(
    network: nn.Module, graph: Path, outputs: Sequence[str], tokenizer: Path, texts: Sequence[str]
) -> float:
    """Returns the largest absolute difference of any output over `texts`, one text a run."""
    session, tokenise = OnnxSession(graph, list(outputs)), _tokeniser(tokenizer)
    network.eval()
    worst = 0.0
    for text in texts:
        ids = tokenise(text)
        half = len(ids) // 2
        types = [0] * half + [1] * (len(ids) - half)
        inputs = model_inputs(ids, types)
        with torch.no_grad():
            expected = network(*(torch.from_numpy(value) for value in inputs.values()))
        expected = expected if isinstance(expected, tuple) else (expected,)
        worst = max(worst, _apart(expected, session.run(inputs)))
    return worst


def split_difference(
    network: SplitReader, lower: Path, upper: Path, tokenizer: Path, texts: Sequence[str]
) -> float:
    """Returns the largest difference of a split reader's two graphs, over texts of two segments.

    The upper layers of both have the same input: the smallest difference of states that lie between
    two levels would be rounded to a whole level.
    """
    below = OnnxSession(lower, list(LOWER_OUTPUTS))
    above, tokenise = OnnxSession(upper, list(READER_OUTPUTS)), _tokeniser(tokenizer)
    network.eval()
    worst = 0.0
    for text in texts:
        ids = torch.tensor([tokenise(text)])
        parts = ids.tensor_split(2, dim=1)
        with torch.no_grad():
            states = [
                network.lower(part, at, torch.ones_like(part)) for at, part in enumerate(parts)
            ]
            stored, scale = levels(states[1])
            joined = torch.cat([states[0], stored * scale], 1)
            start, end, relevance = network.read(network.upper(joined, torch.ones_like(ids))[-1])
        for at, part in enumerate(parts):
            given = part, torch.full_like(part, at)
            worst = max(worst, _apart(states[at : at + 1], below.run(_named(LOWER_INPUTS, given))))
        outputs = above.run(_named(UPPER_INPUTS, (states[0], stored.to(torch.int8), scale)))
        asked = parts[0].shape[1]
        worst = max(worst, _apart((start[:, asked:], end[:, asked:], relevance), outputs))
    return worst


def mean_cosine(first: Path, second: Path, tokenizer: Path, texts: Sequence[str]) -> float:
    """Returns the mean cosine between two encoders' vectors of the same texts."""
    tokenise = _tokeniser(tokenizer)
    sessions = [OnnxSession(path, ["embedding"]) for path in (first, second)]
    cosines = []
    for text in texts:
        ids = tokenise(text)
        vectors = [session.run(model_inputs(ids, [0] * len(ids)))[0][0] for session in sessions]
        cosines.append(float(vectors[0] @ vectors[1]))
    return float(np.mean(cosines))


def _tokeniser(path: Path) -> Callable[[str], list[int]]:
    words = Tokenizer.from_file(str(path))
    words.no_padding()
    words.enable_truncation(_MOST_TOKENS)
    return lambda text: list(words.encode(text).ids)


def _named(names: Sequence[str], values: Sequence[Tensor]) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in zip(names, values, strict=True)}


def _apart(wanted: Sequence[Tensor], got: Sequence[np.ndarray]) -> float:
    """Infinite if anything is no number: `max` takes no notice of NaN."""
    pairs = zip(wanted, got, strict=True)
    most = [float(np.abs(want.numpy() - own).max()) for want, own in pairs]
    return max(each if math.isfinite(each) else math.inf for each in most)
