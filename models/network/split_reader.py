"""Network of a split reader, whose lower layers see question and passage separately.

The method is DeFormer (Cao et al. 2020).

The lower layers' states of a passage do not depend on the question, so they are computed when the
passage is indexed. The upper layers see both texts. Lower and upper layers are exported as two
graphs.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention, softmax

from models.network.architecture import Logits, Reader
from models.network.export import READER_OUTPUTS, trace_graph
from winnow.reading.four_bits import GROUP, MAX_LEVEL, ROUNDED

PASSAGE_POSITION = 64
"""Position of a passage's first token, after the longest possible question."""
_MASKED = -1e4


class SplitReader(nn.Module):
    """A reader with split lower layers. Its weights have the same names as those of `Reader`."""

    def __init__(self, reader: Reader, split_layers: int) -> None:
        """Uses the layers of `reader`, without copying them."""
        super().__init__()
        self.body, self.span, self.relevance = reader.body, reader.span, reader.relevance
        self.split_layers = split_layers

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """Maps three int64 [batch, tokens] to `Logits`. Token type 1 is the passage."""
        return self.read(self.states(input_ids, attention_mask, token_type_ids)[-1])

    def states(self, ids: Tensor, mask: Tensor, types: Tensor) -> list[Tensor]:
        """Returns the input of the upper layers, then the states of each upper layer.

        Each tensor is [batch, tokens, width], in the order of `ids`.
        """
        segments = find_segments(mask, types)
        question = self.lower(segments.question(ids), 0, segments.question_mask)
        passage = self.lower(segments.passage(ids), 1, segments.passage_mask)
        joined = torch.cat([question, round_states(passage)], 1)
        upper = self.upper(joined, torch.cat([segments.question_mask, segments.passage_mask], 1))
        return [segments.restore_order(states) for states in (joined, *upper)]

    def lower(self, ids: Tensor, segment: int, mask: Tensor) -> Tensor:
        """Computes states [batch, tokens, width] of questions (segment 0) or passages (1)."""
        first = PASSAGE_POSITION if segment else 0
        positions = torch.arange(first, first + ids.shape[1], device=ids.device).expand_as(ids)
        segments = torch.full_like(ids, segment)
        states = self.body.embeddings(
            input_ids=ids, token_type_ids=segments, position_ids=positions
        )
        for layer in self.body.encoder.layer[: self.split_layers]:
            states = run_layer(layer, states, states, mask)
        return cast(Tensor, states)

    def upper(self, joined: Tensor, mask: Tensor) -> list[Tensor]:
        """Computes the states of both segments in every upper layer."""
        by_layer = [joined]
        for layer in self.body.encoder.layer[self.split_layers :]:
            by_layer.append(run_layer(layer, by_layer[-1], by_layer[-1], mask))
        return by_layer[1:]

    def read(self, states: Tensor) -> Logits:
        """Applies the heads to states, as `Reader.read` does."""
        start, end = self.span(states).float().unbind(-1)
        return start, end, self.relevance(states[:, 0]).float().squeeze(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Splits [batch, tokens] into questions and passages, each padded to its longest."""

    question_mask: Tensor
    """Mask of the questions, [batch, question tokens]."""
    passage_mask: Tensor
    """Mask of the passages, [batch, passage tokens]."""
    _question_positions: Tensor
    _passage_positions: Tensor
    _joined_positions: Tensor

    def question(self, values: Tensor) -> Tensor:
        """Returns the questions' part of [batch, tokens]."""
        return values.gather(1, self._question_positions)

    def passage(self, values: Tensor) -> Tensor:
        """Returns the passages' part of [batch, tokens]."""
        return values.gather(1, self._passage_positions)

    def restore_order(self, joined: Tensor) -> Tensor:
        """Returns the states `joined`, questions before passages, in the original token order."""
        return joined.gather(1, self._joined_positions[..., None].expand(-1, -1, joined.shape[2]))


def find_segments(mask: Tensor, types: Tensor) -> Segments:
    """Returns the segments of [batch, tokens]. Token type 0 is the question, 1 the passage."""
    passages = (types * mask).sum(1, keepdim=True)
    questions = mask.sum(1, keepdim=True) - passages
    max_lengths = int(questions.max()), int(passages.max())
    positions = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    in_question, in_passage = (positions[:, :length] for length in max_lengths)
    joined = torch.where(positions < questions, positions, positions - questions + max_lengths[0])
    return Segments(
        question_mask=in_question < questions,
        passage_mask=in_passage < passages,
        _question_positions=in_question.minimum(questions - 1),
        _passage_positions=in_passage.minimum(passages - 1) + questions,
        _joined_positions=joined.clamp(max=sum(max_lengths) - 1),
    )


def run_layer(
    layer: nn.Module, queries: Tensor, keys: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Runs a BERT layer for the states `queries`, which attend to `keys` where `mask` is 1."""
    block: Any = layer
    attention = block.attention.self
    query, key, value = (
        linear(states).unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2)
        for linear, states in (
            (attention.query, queries),
            (attention.key, keys),
            (attention.value, keys),
        )
    )
    # the plain products are faster than the fused kernel on a CPU and in exported graphs
    attend = attend_fused if query.is_cuda else attend_plainly
    context = attend(query, key, value, mask).transpose(1, 2).flatten(2)
    attended = block.attention.output(context, queries)
    return cast(Tensor, block.output(block.intermediate(attended), attended))


def attend_plainly(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Computes attention [batch, heads, queries, width] to the keys where `mask` is 1.

    `mask` is [batch, keys].
    """
    logits = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
    if mask is not None:
        logits = logits + (1 - mask[:, None, None, :].to(query.dtype)) * _MASKED
    return softmax(logits, -1).to(value.dtype) @ value


def attend_fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Computes the same as `attend_plainly` in one kernel, which is faster on a GPU."""
    attended = None if mask is None else mask.bool()[:, None, None, :]
    return scaled_dot_product_attention(query, key, value, attended)


def quantise_states(states: Tensor) -> tuple[Tensor, Tensor]:
    """Returns states as an index stores them: levels from -127 to 127, and one scale per token."""
    scale = states.float().abs().amax(-1, keepdim=True).clamp(min=1e-8) / MAX_LEVEL
    return _round_levels((states.float() / scale).round()), scale


def _round_levels(levels: Tensor) -> Tensor:
    """Rounds levels [..., tokens, width] to 4 bits; the same as `four_bits.round_levels`."""
    width = levels.shape[-1]
    whole = levels.nan_to_num().clamp(-MAX_LEVEL, MAX_LEVEL).long()
    groups = pad(whole, (0, -width % GROUP)).reshape(*whole.shape[:-1], -1, GROUP)
    maxima = groups.abs().amax(-1, keepdim=True)
    rounded = torch.from_numpy(ROUNDED).to(levels.device)[maxima * 256 + groups % 256]
    return rounded.flatten(-2)[..., :width].to(levels.dtype)


def round_states(states: Tensor) -> Tensor:
    """Rounds states as an index stores them. Gradients ignore the rounding."""
    with torch.no_grad():
        levels, scales = quantise_states(states)
        change = (levels * scales - states.float()).to(states.dtype)
    return states + change


LOWER_INPUTS, LOWER_OUTPUTS = ("input_ids", "token_type_ids"), ("states",)
UPPER_INPUTS = ("question_states", "passage_levels", "passage_scales")


class LowerLayers(nn.Module):
    """The lower layers of a split reader, for export."""

    def __init__(self, reader: SplitReader) -> None:
        super().__init__()
        self.body, self.split_layers = reader.body, reader.split_layers

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        """Maps two int64 [1, tokens] to states, float32 [1, tokens, width]."""
        positions = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        positions = positions + token_type_ids * PASSAGE_POSITION
        states: Tensor = self.body.embeddings(
            input_ids=input_ids, token_type_ids=token_type_ids, position_ids=positions
        )
        for layer in self.body.encoder.layer[: self.split_layers]:
            states = run_layer(layer, states, states)
        return states


class UpperLayers(nn.Module):
    """The upper layers of a split reader with its heads, for export."""

    def __init__(self, reader: SplitReader) -> None:
        super().__init__()
        self.body, self.split_layers = reader.body, reader.split_layers
        self.span, self.relevance = reader.span, reader.relevance

    def forward(self, question_states: Tensor, levels: Tensor, scales: Tensor) -> Logits:
        """Maps states of a question and a passage to logits of start, end and relevance.

        Args:
            question_states: float32 [1, question tokens, width].
            levels: int8 [1, passage tokens, width].
            scales: float32 [1, passage tokens, 1].

        Returns:
            Start and end [1, passage tokens] and relevance [1].

        """
        states = torch.cat([question_states, levels.float() * scales], 1)
        *inner, last = self.body.encoder.layer[self.split_layers :]
        for layer in inner:
            states = run_layer(layer, states, states)
        # the heads read only the first token of the question
        queries = torch.cat([states[:, :1], states[:, question_states.shape[1] :]], 1)
        final = run_layer(last, queries, states)
        start, end = self.span(final[:, 1:]).float().unbind(-1)
        return start, end, self.relevance(final[:, 0]).float().squeeze(-1)


def export_split(reader: SplitReader, lower: Path, upper: Path) -> None:
    """Writes the float32 graphs of the lower and the upper layers. A run reads one sequence."""
    ids, width = torch.arange(1000, 1012).unsqueeze(0), reader.body.config.hidden_size
    question, passage = torch.zeros(1, 5, width), torch.ones(1, 9, width, dtype=torch.int8)
    inputs = dict(zip(LOWER_INPUTS, (ids, torch.zeros_like(ids)), strict=True))
    _write_graph(LowerLayers(reader), lower, inputs, LOWER_OUTPUTS)
    inputs = dict(zip(UPPER_INPUTS, (question, passage, torch.ones(1, 9, 1)), strict=True))
    _write_graph(UpperLayers(reader), upper, inputs, READER_OUTPUTS)


def _write_graph(
    network: nn.Module, path: Path, inputs: dict[str, Tensor], outputs: tuple[str, ...]
) -> None:
    axes = {
        name: {1: _axis_name(name)} for name in (*inputs, *outputs) if name != READER_OUTPUTS[2]
    }
    trace_graph(network, path, inputs=inputs, outputs=outputs, axes=axes)


def _axis_name(name: str) -> str:
    """Returns the name of the dynamic axis of an input or output."""
    if name in (*LOWER_INPUTS, *LOWER_OUTPUTS):
        return "tokens"
    return "question_tokens" if name == UPPER_INPUTS[0] else "passage_tokens"
