"""The two networks: a sentence encoder and a reader, both on a BERT body.

Knows tensors in and tensors out; knows nothing of text, training or files other than weights.
"""

from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel


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

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """int64 [batch, tokens] three times to start and end logits [batch, tokens] and relevance
        logits [batch], all float32.
        """
        states = hidden_states(self.body, input_ids, attention_mask, token_type_ids)
        start, end = self.span(states).float().unbind(-1)
        return start, end, self.relevance(states[:, 0]).float().squeeze(-1)


def hidden_states(body: BertModel, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
    """The last layer's states, [batch, tokens, width]."""
    output = body(input_ids=ids, attention_mask=mask, token_type_ids=types)
    return cast(Tensor, output.last_hidden_state)


def load_body(directory: Path) -> BertModel:
    """A BERT body from a Hugging Face directory, dropout off.

    Dropout costs time and, over the few passes that fine-tuning makes, buys nothing here. Attention
    is written out: on a CPU with bfloat16 PyTorch's fused kernel took 1.35 times as long a step.
    """
    config = BertConfig.from_pretrained(directory)
    config.hidden_dropout_prob = 0.0
    config.attention_probs_dropout_prob = 0.0
    return BertModel.from_pretrained(
        directory, config=config, add_pooling_layer=False, attn_implementation="eager"
    )


def freeze_embeddings(body: BertModel) -> None:
    """Leaves the embedding tables as they are: half the weights, and rare words stay known."""
    for parameter in body.embeddings.parameters():
        parameter.requires_grad_(False)


def count_parameters(module: nn.Module, trained_only: bool = False) -> int:
    """The number of weights, or of those that training changes."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad or not trained_only)


def dummy_inputs(tokens: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs of the right shape for tracing: one sequence of `tokens` tokens."""
    ids = torch.arange(1000, 1000 + tokens).unsqueeze(0)
    return ids, torch.ones_like(ids), torch.zeros_like(ids)
