"""Networks of the encoder and the full cross-encoder on a BERT body, and means of weights."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel
from transformers.utils import logging


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Disables logs and progress bars of transformers, whose bars would start a thread."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


Logits = tuple[Tensor, Tensor, Tensor]
"""Logits of start and end [batch, tokens] and of relevance [batch], float32."""


class Encoder(nn.Module):
    """Encodes texts as unit vectors, so that Euclidean distance orders them as cosine does.

    Pools by the mean of the attended tokens, as all-MiniLM-L6-v2 was trained
    (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2).
    """

    def __init__(self, body: BertModel) -> None:
        super().__init__()
        self.body = body

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Maps three int64 [batch, tokens] to unit vectors, float32 [batch, width]."""
        states = hidden_states(self.body, input_ids, attention_mask, token_type_ids)
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        pooled = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return nn.functional.normalize(pooled, dim=-1)


class Reader(nn.Module):
    """Full cross-encoder: reads a question with a passage.

    As in DPR (Karpukhin et al. 2020, section 6.1), the span heads read every token and the
    relevance head reads the first.
    """

    def __init__(self, body: BertModel) -> None:
        super().__init__()
        self.body = body
        width = body.config.hidden_size
        self.span = nn.Linear(width, 2)
        self.relevance = nn.Linear(width, 1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """Maps three int64 [batch, tokens] to `Logits`."""
        return self.read(hidden_states(self.body, input_ids, attention_mask, token_type_ids))

    def read(self, states: Tensor) -> Logits:
        """Applies the heads to states [batch, tokens, width]."""
        start, end = self.span(states).float().unbind(-1)
        return start, end, self.relevance(states[:, 0]).float().squeeze(-1)


def hidden_states(body: BertModel, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
    """Returns the last layer's states, [batch, tokens, width]."""
    output = body(input_ids=ids, attention_mask=mask, token_type_ids=types)
    return cast(Tensor, output.last_hidden_state)


def all_states(body: BertModel, ids: Tensor, mask: Tensor, types: Tensor) -> list[Tensor]:
    """Returns the embeddings and the states of every layer, each [batch, tokens, width]."""
    output = body(
        input_ids=ids, attention_mask=mask, token_type_ids=types, output_hidden_states=True
    )
    return list(output.hidden_states)


def load_body(directory: Path) -> BertModel:
    """Loads a BERT body from a Hugging Face directory, with dropout off.

    Dropout takes time and gains nothing in the few passes of fine-tuning. Attention is eager,
    because PyTorch's fused kernel took 1.35 times as long on a CPU with bfloat16.
    """
    config = BertConfig.from_pretrained(directory)
    config.hidden_dropout_prob = 0.0
    config.attention_probs_dropout_prob = 0.0
    with quiet_transformers():
        return BertModel.from_pretrained(
            directory, config=config, add_pooling_layer=False, attn_implementation="eager"
        )


def shorten_body(body: BertModel, layers: int) -> None:
    """Keeps `layers` evenly spaced layers, including the first and the last.

    The first layer fits the embeddings and the last layer fits the heads. Sanh et al. 2019
    (DistilBERT, section 3) initialise their student in the same way.
    """
    all_layers = body.encoder.layer
    indices = evenly_spaced(len(all_layers), layers)
    body.encoder.layer = nn.ModuleList([all_layers[index] for index in indices])
    body.config.num_hidden_layers = layers


def evenly_spaced(total: int, count: int) -> list[int]:
    """Returns `count` of the indices below `total`, ascending.

    Raises:
        ValueError: `count` is below 1 or above `total`.

    """
    if not 1 <= count <= total:
        raise ValueError(f"cannot choose {count} of {total} layers")
    return [round(step * (total - 1) / max(count - 1, 1)) for step in range(count)]


def freeze_embeddings(body: BertModel) -> None:
    """Excludes the embedding tables from training, so that rare words keep their meaning."""
    for parameter in body.embeddings.parameters():
        parameter.requires_grad_(False)


def dummy_inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Returns ids, mask and token types of one sequence, for tracing."""
    ids = torch.arange(1000, 1012).unsqueeze(0)
    return ids, torch.ones_like(ids), torch.zeros_like(ids)


def mean_weights(networks: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Returns the mean of each weight. Integers, such as counters, come from the first network."""
    return {
        name: torch.stack([network[name] for network in networks]).mean(0)
        if first.is_floating_point()
        else first
        for name, first in networks[0].items()
    }


def interpolate_weights(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float
) -> dict[str, Tensor]:
    """Returns weights between `before` and `after`. `share` is the weight of `after`."""
    return {
        name: torch.lerp(old, after[name], share) if old.is_floating_point() else old
        for name, old in before.items()
    }
