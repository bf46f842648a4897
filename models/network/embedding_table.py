"""A token embedding table in int8, one scale a token.

Half of a small BERT is its embedding table. One scale for the whole table, as ONNX Runtime's
quantiser would give it, wastes most of the levels on a few large rows; one scale a row costs
4 bytes a token and loses next to nothing.
"""

import torch
from torch import Tensor, nn
from transformers import BertModel, DistilBertModel


class RowQuantisedEmbedding(nn.Module):
    """An embedding that is stored as int8 [tokens, width] with float32 scales [tokens, 1]."""

    levels: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("levels", (weight / scale).round().to(torch.int8))

    def forward(self, ids: Tensor) -> Tensor:
        """int64 [...] to float32 [..., width]."""
        rows = nn.functional.embedding(ids, self.levels)
        return rows.float() * nn.functional.embedding(ids, self.scale)


def shrink_embeddings(body: BertModel | DistilBertModel) -> None:
    """Replaces the body's token embeddings by their int8 form, for export."""
    table = body.embeddings.word_embeddings.weight.detach()
    setattr(body.embeddings, "word_embeddings", RowQuantisedEmbedding(table))  # noqa: B010
