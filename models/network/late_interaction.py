"""Late interaction of a question's and a passage's tokens (ColBERT: Khattab and Zaharia 2020).

A projection of the encoder's token states gives a few values for each token. A question's token
scores by its most similar token of the passage, and has a weight that depends on its state. The
encoder does not change, so its vectors stay valid.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

_MASKED = -1e4


class LateInteraction(nn.Module):
    """Projection of token states to unit vectors of `values` values, and weights of tokens."""

    def __init__(self, width: int, values: int, layers: Sequence[int]) -> None:
        """Projects the states of these layers of the encoder, each [.., `width`]; 0: embeddings."""
        super().__init__()
        self.layers = tuple(layers)
        self.project = nn.Linear(width * len(layers), values, bias=False)
        self.weigh = nn.Linear(width * len(layers), 1)
        self.scale = nn.Parameter(torch.tensor(2.0))

    @property
    def name(self) -> str:
        """Layers and values, such as `layers 4+6, 32 values`."""
        layers = "+".join(map(str, self.layers))
        return f"layers {layers}, {self.project.out_features} values"

    def passage_tokens(self, states: Sequence[Tensor]) -> Tensor:
        """Maps the states of all layers [passages, tokens, width] to [passages, tokens, values]."""
        return normalize(self.project(self._chosen(states)).float(), dim=-1)

    def question_tokens(self, states: Sequence[Tensor], mask: Tensor) -> Tensor:
        """Maps the states of all layers to tokens, multiplied by their weights; 0 outside `mask`.

        Returns [questions, tokens, values].
        """
        chosen = self._chosen(states)
        weights = softplus(self.weigh(chosen).float()) * mask[..., None]
        return normalize(self.project(chosen).float(), dim=-1) * weights * self.scale

    def _chosen(self, states: Sequence[Tensor]) -> Tensor:
        return torch.cat([states[layer] for layer in self.layers], -1)


def max_similarities(questions: Tensor, passages: Tensor, mask: Tensor) -> Tensor:
    """Returns the scores of candidates, [questions, candidates].

    Args:
        questions: weighted tokens, [questions, question tokens, values].
        passages: tokens of each question's candidates, [questions, candidates, tokens, values].
        mask: whether a token is there, bool [questions, candidates, tokens].

    """
    similar = torch.einsum("qtv,qcpv->qctp", questions.to(passages.dtype), passages)
    scores: Tensor = similar.masked_fill(~mask[:, :, None], _MASKED).amax(3).float().sum(2)
    return scores


def round_tokens(tokens: Tensor, bits: int) -> Tensor:
    """Returns tokens [.., values] rounded as an index stores them, with one scale a token."""
    levels = 2 ** (bits - 1) - 1
    scale = tokens.abs().amax(-1, keepdim=True).clamp(min=1e-8) / levels
    rounded: Tensor = (tokens / scale).round() * scale
    return rounded
