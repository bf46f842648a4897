"""Networks of heads, and their export to ONNX in float32 and int8.

The networks are small. A server keeps a thousand of them in memory, and runs ten on a text in the
time that the encoder takes for one word.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from models.network.export import quantise_graph, trace_graph
from winnow.heads.manifest import INPUT, OUTPUT

_PADDING_ATTENTION = -1e4
"""Added to the attention logits of padding."""


class Dense(nn.Linear):
    """A linear layer that is exported as MatMul and Add. `quantise_graph` handles only MatMul."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Maps […, in] to […, out]."""
        return input @ self.weight.t() + self.bias


class SequenceNetwork(nn.Module):
    """Network of sequence heads: attention pooling with learnt queries, then one hidden layer.

    The first query starts as the plain mean, which is also the encoder's pooling. The other queries
    learn to find decisive words (Lin et al., 2017, "A structured self-attentive sentence
    embedding").
    """

    def __init__(
        self, *, width: int, labels: int, queries: int, hidden: int, dropout: float, spread: bool
    ) -> None:
        """`spread`: whether there is another logit, that of out-of-scope texts.

        Its probability is divided among all labels. So if it is high, no label is probable.
        """
        super().__init__()
        self._spread = spread
        self.look, self.attention = Dense(width, width // 6), Dense(width // 6, queries)
        self.dropout = nn.Dropout(dropout)
        self.hidden = Dense(queries * width, hidden)
        self.output = Dense(hidden, labels + spread)
        nn.init.zeros_(self.attention.bias)
        with torch.no_grad():
            self.attention.weight[0] = 0

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Maps states [batch, tokens, width] to logits [batch, labels], or [batch, labels + 1].

        `mask` is true for tokens and false for padding, [batch, tokens]; None without padding.
        """
        attention = self.attention(torch.tanh(self.look(states)))
        if mask is not None:
            attention = attention + _PADDING_ATTENTION * ~mask.unsqueeze(-1)
        means: Tensor = attention.softmax(1).transpose(1, 2) @ states
        hidden = torch.relu(self.hidden(self.dropout(means.flatten(1))))
        logits: Tensor = self.output(self.dropout(hidden))
        return logits

    def served_logits(self, states: Tensor) -> Tensor:
        """Maps [tokens, width] to [labels], as the exported graph does."""
        logits: Tensor = self(states.unsqueeze(0))[0]
        if not self._spread:
            return logits
        shares = logits.softmax(0)
        labels = len(logits) - 1
        return torch.log(shares[:labels] + shares[labels:] / labels)


class TokenNetwork(nn.Module):
    """Network of token heads: one layer per token, one over three tokens, and a linear shortcut."""

    def __init__(self, width: int, labels: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.alone, self.near = Dense(width, hidden), Dense(3 * hidden, hidden)
        self.output, self.direct = Dense(hidden, labels), Dense(width, labels)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Maps states [batch, tokens, width] to logits [batch, tokens, labels].

        `mask` is true for tokens and false for padding, [batch, tokens]; None without padding.
        """
        states = self.dropout(states)
        alone = torch.relu(self.alone(states))
        if mask is not None:
            alone = alone * mask.unsqueeze(-1)  # padding counts as zero
        padded = nn.functional.pad(alone, (0, 0, 1, 1))
        together = torch.cat([padded[:, :-2], alone, padded[:, 2:]], -1)
        hidden = alone + torch.relu(self.near(together))
        logits: Tensor = self.output(self.dropout(hidden)) + self.direct(states)
        return logits

    def served_logits(self, states: Tensor) -> Tensor:
        """Maps [tokens, width] to [tokens, labels], as the exported graph does."""
        logits: Tensor = self(states.unsqueeze(0))[0]
        return logits


Network = SequenceNetwork | TokenNetwork


_TRACED_TOKENS = 7
"""Length of the text that is traced."""
_FLOAT_NODES = ("/attention/",)
"""Parts of the names of nodes that stay in float. These nodes are tiny and decide a whole text."""


class _ServedNetwork(nn.Module):
    """Wraps `served_logits` as a module for export."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, states: Tensor) -> Tensor:
        return self.network.served_logits(states)


def export_head(network: Network, width: int, target: Path) -> None:
    """Writes the float32 graph, from states [tokens + 2, width] to logits."""
    served = _ServedNetwork(network)
    axes = {INPUT: {0: "tokens"}}
    if not isinstance(network, SequenceNetwork):
        axes[OUTPUT] = {0: "tokens"}
    states = {INPUT: torch.zeros(_TRACED_TOKENS, width)}
    trace_graph(served, target, inputs=states, outputs=[OUTPUT], axes=axes)


def quantise_head(source: Path, target: Path) -> None:
    """Writes the graph `source` with int8 weights to `target`."""
    quantise_graph(source, target, _FLOAT_NODES)
