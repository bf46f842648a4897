"""Runs encoders and readers on token sequences of a pack, with fused attention on a GPU."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import normalize
from transformers import BertModel

from models.network.architecture import Reader
from models.network.split_reader import run_layer
from models.packed.tokens import PassageTokens, QuestionTokens, Sequences
from models.training.loop import autocast

_GPU_TOKENS, _CPU_TOKENS = 1 << 18, 1 << 12
"""Maximum number of tokens in a batch without gradients."""


def body_states(
    body: BertModel,
    ids: Tensor,
    mask: Tensor,
    types: Tensor | None = None,
    positions: Tensor | None = None,
) -> list[Tensor]:
    """Returns the embeddings and the states of every layer, each [batch, tokens, width]."""
    types = torch.zeros_like(ids) if types is None else types
    embedded = body.embeddings(input_ids=ids, token_type_ids=types, position_ids=positions)
    states: list[Tensor] = [embedded]
    for layer in body.encoder.layer:
        states.append(run_layer(layer, states[-1], states[-1], mask))
    return states


def mean_vectors(states: Tensor, mask: Tensor) -> Tensor:
    """Returns unit vectors [sequences, width] from states, pooled as by `Encoder`."""
    kept = mask[..., None].to(states.dtype)
    return normalize((states * kept).sum(1).float() / kept.sum(1).float().clamp(min=1), dim=-1)


def reader_logits(
    reader: Reader, questions: Sequences, passages: Sequences
) -> tuple[Tensor, Tensor, Tensor]:
    """Reads pairs with a full cross-encoder.

    Returns start and end [pairs, passage tokens] and relevance [pairs]. Question and passage are
    padded separately. The padding does not count in token positions.
    """
    width = questions.ids.shape[1]
    ids = torch.cat([questions.ids, passages.ids], 1)
    mask = torch.cat([questions.mask, passages.mask], 1)
    types = torch.zeros_like(ids)
    types[:, width:] = 1
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    start, end, relevance = reader.read(body_states(reader.body, ids, mask, types, positions)[-1])
    return start[:, width:], end[:, width:], relevance


@torch.no_grad()
def encode_passages(body: BertModel, passages: PassageTokens, rows: Tensor) -> Tensor:
    """Returns the vectors of passages, float16 [rows, width] (float32 on a CPU)."""
    device = passages.device
    kind = torch.float16 if device.type == "cuda" else torch.float32
    vectors = torch.zeros(len(rows), body.config.hidden_size, dtype=kind, device=device)
    for batch in length_batches(passages.lengths[rows]):
        sequences = passages.encoder_sequences(rows[batch])
        with autocast(device.type):
            states = body_states(body, sequences.ids, sequences.mask)[-1]
        vectors[batch] = mean_vectors(states, sequences.mask).to(kind)
    return vectors


@torch.no_grad()
def encode_questions(body: BertModel, questions: QuestionTokens, numbers: Tensor) -> Tensor:
    """Returns the vectors of questions, float32 [questions, width]."""
    vectors = []
    for batch in torch.split(numbers, 2048):
        sequences = questions.sequences(batch)
        with autocast(batch.device.type):
            states = body_states(body, sequences.ids, sequences.mask)[-1]
        vectors.append(mean_vectors(states, sequences.mask))
    return torch.cat(vectors)


def length_batches(lengths: Tensor) -> Iterator[Tensor]:
    """Yields the indices of all texts, in batches of similar lengths and limited total tokens."""
    order = lengths.argsort(descending=True)
    budget = _GPU_TOKENS if lengths.is_cuda else _CPU_TOKENS
    first = 0
    sorted_lengths = lengths[order].cpu()
    while first < len(order):
        size = max(budget // (min(int(sorted_lengths[first]), 256) + 16), 1)
        yield order[first : first + size]
        first += size
