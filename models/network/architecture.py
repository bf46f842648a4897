"""The two networks: a sentence encoder and a reader, both on a BERT body; means of their weights.

Knows tensors in and tensors out; knows nothing of text, training or files other than weights.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel
from transformers.utils import logging


@contextmanager
def quiet() -> Iterator[None]:
    """Disables reports and progress bars while weights are read or written; bars start a thread."""
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
"""Start and end [batch, tokens] and relevance [batch]."""


class Encoder(nn.Module):
    """Text to a unit vector, so that Euclidean order is cosine order.

    Mean pooling over the attended tokens, as all-MiniLM-L6-v2 was trained
    (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2).
    """

    def __init__(self, body: BertModel) -> None:
        super().__init__()
        self.body = body

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """int64 [batch, tokens] three times to float32 [batch, width] of norm one."""
        states = hidden_states(self.body, input_ids, attention_mask, token_type_ids)
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        pooled = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return nn.functional.normalize(pooled, dim=-1)


class Reader(nn.Module):
    """A question with a passage to span logits and the passage's relevance.

    DPR's reader (Karpukhin et al. 2020, section 6.1): the span heads look at every token, the
    relevance head at the first.
    """

    def __init__(self, body: BertModel) -> None:
        super().__init__()
        self.body = body
        width = body.config.hidden_size
        self.span = nn.Linear(width, 2)
        self.relevance = nn.Linear(width, 1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """int64 [batch, tokens] three times to start and end logits [batch, tokens] and relevance
        logits [batch], all float32.
        """
        return self.read(hidden_states(self.body, input_ids, attention_mask, token_type_ids))

    def read(self, states: Tensor) -> Logits:
        """Returns the heads alone: states [batch, tokens, width] to logits, as `forward` gives
        them.
        """
        start, end = self.span(states).float().unbind(-1)
        return start, end, self.relevance(states[:, 0]).float().squeeze(-1)


def hidden_states(body: BertModel, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
    """Returns the last layer's states, [batch, tokens, width]."""
    output = body(input_ids=ids, attention_mask=mask, token_type_ids=types)
    return cast(Tensor, output.last_hidden_state)


def every_state(body: BertModel, ids: Tensor, mask: Tensor, types: Tensor) -> list[Tensor]:
    """Returns the embeddings, then the states of every layer: [batch, tokens, width] each."""
    output = body(
        input_ids=ids, attention_mask=mask, token_type_ids=types, output_hidden_states=True
    )
    return list(output.hidden_states)


def load_body(directory: Path) -> BertModel:
    """Returns a BERT body from a Hugging Face directory, dropout off.

    Dropout costs time and, over the few passes that fine-tuning makes, buys nothing here. Attention
    is written out: on a CPU with bfloat16 PyTorch's fused kernel took 1.35 times as long a step.
    """
    config = BertConfig.from_pretrained(directory)
    config.hidden_dropout_prob = 0.0
    config.attention_probs_dropout_prob = 0.0
    with quiet():
        return BertModel.from_pretrained(
            directory, config=config, add_pooling_layer=False, attn_implementation="eager"
        )


def shorten(body: BertModel, layers: int) -> None:
    """Leaves `layers` of the body's layers, evenly spread, the first and the last among them.

    The first knows the embeddings and the last the heads; Sanh et al. 2019 (DistilBERT, section 3)
    start their student in the same way.
    """
    whole = body.encoder.layer
    body.encoder.layer = nn.ModuleList([whole[place] for place in kept_layers(len(whole), layers)])
    body.config.num_hidden_layers = layers


def kept_layers(of: int, layers: int) -> list[int]:
    """Returns which of `of` layers to keep, ascending.

    Raises:
        ValueError: there are fewer.

    """
    if not 1 <= layers <= of:
        raise ValueError(f"{layers} layers cannot be taken out of {of}")
    return [round(place * (of - 1) / max(layers - 1, 1)) for place in range(layers)]


def freeze_embeddings(body: BertModel) -> None:
    """Leaves the embedding tables as they are: half the weights, and rare words stay known."""
    for parameter in body.embeddings.parameters():
        parameter.requires_grad_(False)


def count_parameters(module: nn.Module, trained_only: bool = False) -> int:
    """Counts the weights, or only those that training changes."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad or not trained_only)


def dummy_inputs(tokens: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    """Returns inputs for tracing: one sequence of `tokens` tokens."""
    ids = torch.arange(1000, 1000 + tokens).unsqueeze(0)
    return ids, torch.ones_like(ids), torch.zeros_like(ids)


def mean_weights(networks: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Returns the mean of the weights; of what is no fraction (a counter), the first one's."""
    return {
        name: torch.stack([network[name] for network in networks]).mean(0)
        if first.is_floating_point()
        else first
        for name, first in networks[0].items()
    }


def mixed_weights(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float
) -> dict[str, Tensor]:
    """Weights between those before training (`share` 0) and after it (1)."""
    return {
        name: torch.lerp(old, after[name], share) if old.is_floating_point() else old
        for name, old in before.items()
    }
