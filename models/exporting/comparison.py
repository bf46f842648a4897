"""Raw vectors to vectors of norm one whose squared Euclidean distance keeps their order.

An index holds unit vectors and compares them by squared Euclidean distance. Cosine order is then
kept by dividing by the norm. Inner product order is kept by one more coordinate, as DPR's HNSW
index has it (Bachrach et al. 2014, "Speeding up the Xbox recommender system", theorem 1): a passage
x becomes (x / R, sqrt(1 - |x|² / R²)), a question q becomes (q / |q|, 0), and

    |q' - x'|² = 2 - 2 q·x / (|q| R)

which falls as q·x grows, for every question. R must be at least the norm of any passage. DPR takes
the largest of a corpus, so that its index cannot grow; here R follows from the weights
(`norm_bound`), so that it holds for passages nobody has seen. A larger R changes no order.
"""

import math
from typing import cast

import torch
from torch import Tensor, nn
from transformers import BertModel, DistilBertModel


class Direction(nn.Module):
    """Cosine: [batch, width] to [batch, width] of norm one."""

    def forward(self, vectors: Tensor) -> Tensor:
        return nn.functional.normalize(vectors, dim=-1)


class AskedByProduct(nn.Module):
    """Inner product, questions: [batch, width] to [batch, width + 1] of norm one."""

    def forward(self, vectors: Tensor) -> Tensor:
        unit = nn.functional.normalize(vectors, dim=-1)
        return torch.cat([unit, torch.zeros_like(unit[:, :1])], dim=-1)


class FoundByProduct(nn.Module):
    """Inner product, passages: [batch, width] to [batch, width + 1] of norm one."""

    def __init__(self, bound: float) -> None:
        """`bound` is R, at least the norm of any vector that will come."""
        super().__init__()
        self.bound = bound

    def forward(self, vectors: Tensor) -> Tensor:
        scaled = vectors / self.bound
        left = 1 - (scaled * scaled).sum(-1, keepdim=True)
        # below zero by rounding only, at a vector on the bound itself
        return torch.cat([scaled, left.clamp(min=0).sqrt()], dim=-1)


def norm_bound(body: BertModel | DistilBertModel, projection: nn.Linear | None) -> float:
    """Returns a norm that no pooled vector of any text exceeds.

    The last layer normalisation gives g * n + b, where n has a norm of at most sqrt(width); neither
    pooling by the first token nor a mean makes it longer, and a projection stretches it by at most
    its spectral norm.
    """
    last = _last_norm(body)
    gain, shift = last.weight.detach(), last.bias.detach()
    bound = float(gain.abs().max()) * math.sqrt(len(gain)) + float(shift.norm())
    if projection is None:
        return bound
    stretch = float(torch.linalg.matrix_norm(projection.weight.detach(), 2))
    return stretch * bound + float(projection.bias.detach().norm())


def _last_norm(body: BertModel | DistilBertModel) -> nn.LayerNorm:
    if isinstance(body, DistilBertModel):
        return cast(nn.LayerNorm, body.transformer.layer[-1].output_layer_norm)
    return cast(nn.LayerNorm, body.encoder.layer[-1].get_submodule("output.LayerNorm"))
