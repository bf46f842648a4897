"""Late interaction of a question's and a passage's tokens (ColBERT: Khattab and Zaharia 2020).

Each token's state in the encoder is projected to a vector of few values. The score of a passage is
the sum of one similarity per question token: the largest with any token of the passage. Question
tokens have weights that depend on their states. The encoder does not change, so its vectors stay
valid.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

_MASKED = -1e4


class LateInteraction(nn.Module):
    """Projects token states to unit vectors of `values` values, and weighs question tokens."""

    def __init__(self, width: int, values: int, layers: Sequence[int]) -> None:
        """`layers` are the encoder layers whose states, each [.., `width`], are projected.

        Layer 0 stands for the embeddings.
        """
        super().__init__()
        self.layers = tuple(layers)
        self.project = nn.Linear(width * len(layers), values, bias=False)
        self.weigh = nn.Linear(width * len(layers), 1)
        self.scale = nn.Parameter(torch.tensor(2.0))

    @property
    def name(self) -> str:
        """Name by layers and values, such as `layers 4+6, 32 values`."""
        layers = "+".join(map(str, self.layers))
        return f"layers {layers}, {self.project.out_features} values"

    def passage_token_vectors(self, states: Sequence[Tensor]) -> Tensor:
        """Maps the states of all layers [passages, tokens, width] to [passages, tokens, values]."""
        return normalize(self.project(self._select_layers(states)).float(), dim=-1)

    def question_tokens(self, states: Sequence[Tensor], mask: Tensor) -> Tensor:
        """Maps the states of all layers to weighted tokens [questions, tokens, values].

        Tokens outside `mask` are 0.
        """
        chosen = self._select_layers(states)
        weights = softplus(self.weigh(chosen).float()) * mask[..., None]
        return normalize(self.project(chosen).float(), dim=-1) * weights * self.scale

    def _select_layers(self, states: Sequence[Tensor]) -> Tensor:
        return torch.cat([states[layer] for layer in self.layers], -1)


def max_similarities(questions: Tensor, passages: Tensor, mask: Tensor) -> Tensor:
    """Returns the scores of candidates, [questions, candidates].

    Args:
        questions: weighted tokens, [questions, question tokens, values].
        passages: tokens of each question's candidates, [questions, candidates, tokens, values].
        mask: true for tokens and false for padding, [questions, candidates, tokens].

    """
    similar = torch.einsum("qtv,qcpv->qctp", questions.to(passages.dtype), passages)
    scores: Tensor = similar.masked_fill(~mask[:, :, None], _MASKED).amax(3).float().sum(2)
    return scores


def round_tokens(tokens: Tensor, bits: int) -> Tensor:
    """Returns tokens [.., values], rounded as an index stores them, with one scale per token."""
    levels = 2 ** (bits - 1) - 1
    scale = tokens.abs().amax(-1, keepdim=True).clamp(min=1e-8) / levels
    rounded: Tensor = (tokens / scale).round() * scale
    return rounded
