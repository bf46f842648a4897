"""Maps vectors to unit vectors whose squared Euclidean distance keeps the similarity order.

An index contains unit vectors and compares them by squared Euclidean distance. Dividing by the norm
keeps the order of cosines. One more coordinate keeps the order of inner products, as in DPR's HNSW
index (Bachrach et al. 2014, "Speeding up the Xbox recommender system", theorem 1): a passage
x becomes (x / R, sqrt(1 - |x|² / R²)), a question q becomes (q / |q|, 0), and

    |q' - x'|² = 2 - 2 q·x / (|q| R)

which falls as q·x grows, for every question. R must be at least the norm of every passage vector.
DPR takes the largest norm of a corpus, so its index cannot grow. Here R follows from the weights
(`norm_bound`), so it also bounds new passages. A larger R changes no order.
"""

import math
from typing import cast

import torch
from torch import Tensor, nn
from transformers import BertModel, DistilBertModel


class CosineTransform(nn.Module):
    """Transform for cosine similarity: [batch, width] to unit vectors [batch, width]."""

    def forward(self, vectors: Tensor) -> Tensor:
        return nn.functional.normalize(vectors, dim=-1)


class QuestionProductTransform(nn.Module):
    """Transform of questions for inner products: [batch, width] to unit [batch, width + 1]."""

    def forward(self, vectors: Tensor) -> Tensor:
        unit = nn.functional.normalize(vectors, dim=-1)
        return torch.cat([unit, torch.zeros_like(unit[:, :1])], dim=-1)


class PassageProductTransform(nn.Module):
    """Transform of passages for inner products: [batch, width] to unit [batch, width + 1]."""

    def __init__(self, bound: float) -> None:
        """`bound` is R, at least the norm of every passage vector."""
        super().__init__()
        self.bound = bound

    def forward(self, vectors: Tensor) -> Tensor:
        scaled = vectors / self.bound
        remainder = 1 - (scaled * scaled).sum(-1, keepdim=True)
        # the remainder is negative only by rounding, if the norm equals the bound
        return torch.cat([scaled, remainder.clamp(min=0).sqrt()], dim=-1)


def norm_bound(body: BertModel | DistilBertModel, projection: nn.Linear | None) -> float:
    """Returns an upper bound of the norm of every pooled vector.

    The last layer normalisation gives g * n + b, where n has a norm of at most sqrt(width). Pooling
    does not increase the norm. A projection increases it by at most its spectral norm.
    """
    last = _last_layer_norm(body)
    gain, shift = last.weight.detach(), last.bias.detach()
    bound = float(gain.abs().max()) * math.sqrt(len(gain)) + float(shift.norm())
    if projection is None:
        return bound
    spectral_norm = float(torch.linalg.matrix_norm(projection.weight.detach(), 2))
    return spectral_norm * bound + float(projection.bias.detach().norm())


def _last_layer_norm(body: BertModel | DistilBertModel) -> nn.LayerNorm:
    if isinstance(body, DistilBertModel):
        return cast(nn.LayerNorm, body.transformer.layer[-1].output_layer_norm)
    return cast(nn.LayerNorm, body.encoder.layer[-1].get_submodule("output.LayerNorm"))
