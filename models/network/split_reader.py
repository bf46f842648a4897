"""A split reader: its lower layers see question and passage apart (Cao et al. 2020, "DeFormer").

The states that the lower layers compute for a passage do not depend on the question, so they are
computed when the passage is indexed. The upper layers see both, as those of any reader do. It is
served as two networks: its lower layers, and its upper ones.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from models.network.architecture import Logits, Reader
from models.network.export import READER_OUTPUTS, trace

PASSAGE_POSITION = 64
"""Position of a passage's first token: behind the longest question, wherever this one ends."""
LEVELS = 127
_NEVER = -1e4


class SplitReader(nn.Module):
    """A reader that is split in its lowest layers; its weights have the names of `Reader`'s."""

    def __init__(self, reader: Reader, split_layers: int) -> None:
        """Takes over the layers of `reader`."""
        super().__init__()
        self.body, self.span, self.relevance = reader.body, reader.span, reader.relevance
        self.split_layers = split_layers

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """Returns logits as `Reader.forward` does; segment 1 of the ids is the passage."""
        return self.read(self.states(input_ids, attention_mask, token_type_ids)[-1])

    def states(self, ids: Tensor, mask: Tensor, types: Tensor) -> list[Tensor]:
        """Returns the input of the upper layers, then the states of each of them.

        All are [batch, tokens, width], in the order of `ids`.
        """
        segments = segments_of(mask, types)
        question = self.lower(segments.question(ids), 0, segments.question_mask)
        passage = self.lower(segments.passage(ids), 1, segments.passage_mask)
        joined = torch.cat([question, as_stored(passage)], 1)
        every = self.upper(joined, torch.cat([segments.question_mask, segments.passage_mask], 1))
        return [segments.back(states) for states in (joined, *every)]

    def lower(self, ids: Tensor, segment: int, mask: Tensor) -> Tensor:
        """Computes states [batch, tokens, width] of one segment: questions are 0, passages 1."""
        first = PASSAGE_POSITION if segment else 0
        places = torch.arange(first, first + ids.shape[1], device=ids.device).expand_as(ids)
        segments = torch.full_like(ids, segment)
        states = self.body.embeddings(input_ids=ids, token_type_ids=segments, position_ids=places)
        for layer in self.body.encoder.layer[: self.split_layers]:
            states = through(layer, states, states, mask)
        return cast(Tensor, states)

    def upper(self, joined: Tensor, mask: Tensor) -> list[Tensor]:
        """Computes the states of every upper layer, of both segments."""
        found = [joined]
        for layer in self.body.encoder.layer[self.split_layers :]:
            found.append(through(layer, found[-1], found[-1], mask))
        return found[1:]

    def read(self, states: Tensor) -> Logits:
        """Returns the heads alone, as `Reader.read`."""
        start, end = self.span(states).float().unbind(-1)
        return start, end, self.relevance(states[:, 0]).float().squeeze(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Positions of question and passage in [batch, tokens], each padded to its longest."""

    question_mask: Tensor
    """Mask of the questions, [batch, question tokens]."""
    passage_mask: Tensor
    """Mask of the passages, [batch, passage tokens]."""
    _question_at: Tensor
    _passage_at: Tensor
    _back: Tensor

    def question(self, values: Tensor) -> Tensor:
        """Returns the question's part of [batch, tokens]."""
        return values.gather(1, self._question_at)

    def passage(self, values: Tensor) -> Tensor:
        """Returns the passage's part of [batch, tokens]."""
        return values.gather(1, self._passage_at)

    def back(self, joined: Tensor) -> Tensor:
        """Returns joined states in the order of the tokens."""
        return joined.gather(1, self._back[..., None].expand(-1, -1, joined.shape[2]))


def segments_of(mask: Tensor, types: Tensor) -> Segments:
    """Returns the segments of [batch, tokens]: a question in segment 0, then its passage in 1."""
    passage_tokens = types * mask
    passages = passage_tokens.sum(1, keepdim=True)
    questions = mask.sum(1, keepdim=True) - passages
    longest = int(questions.max()), int(passages.max())
    places = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    question_at, passage_at = (places[:, :most] for most in longest)
    back = torch.where(places < questions, places, places - questions + longest[0])
    return Segments(
        question_mask=question_at < questions,
        passage_mask=passage_at < passages,
        _question_at=question_at.minimum(questions - 1),
        _passage_at=passage_at.minimum(passages - 1) + questions,
        _back=back.clamp(max=sum(longest) - 1),
    )


def through(
    layer: nn.Module, asking: Tensor, attended: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Runs a layer for the tokens `asking`, which attend to `attended`, or to those in `mask`."""
    whole: Any = layer
    own = whole.attention.self
    query, key, value = (
        linear(states).unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)
        for linear, states in ((own.query, asking), (own.key, attended), (own.value, attended))
    )
    nearness = query @ key.transpose(2, 3) * own.attention_head_size**-0.5
    if mask is not None:
        nearness = nearness + (1 - mask[:, None, None, :].to(query.dtype)) * _NEVER
    weights = softmax(nearness, -1)
    context = (weights.to(value.dtype) @ value).transpose(1, 2).flatten(2)
    seen = whole.attention.output(context, asking)
    return cast(Tensor, whole.output(whole.intermediate(seen), seen))


def levels(states: Tensor) -> tuple[Tensor, Tensor]:
    """States as they are stored: whole numbers from -127 to 127, and one scale a token."""
    scale = states.float().abs().amax(-1, keepdim=True).clamp(min=1e-8) / LEVELS
    return (states.float() / scale).round(), scale


def as_stored(states: Tensor) -> Tensor:
    """States on the grid of what is stored; gradients pass through."""
    with torch.no_grad():
        whole, scale = levels(states)
        change = (whole * scale - states.float()).to(states.dtype)
    return states + change


LOWER_INPUTS, LOWER_OUTPUTS = ("input_ids", "token_type_ids"), ("states",)
UPPER_INPUTS = ("question_states", "passage_levels", "passage_scales")


class LowerLayers(nn.Module):
    """The lower layers of a split reader: a question (segment 0) or a passage (1) to its states."""

    def __init__(self, reader: SplitReader) -> None:
        super().__init__()
        self.body, self.split_layers = reader.body, reader.split_layers

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        """int64 [1, tokens] twice to float32 [1, tokens, width]."""
        own = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        places = own + token_type_ids * PASSAGE_POSITION
        states: Tensor = self.body.embeddings(
            input_ids=input_ids, token_type_ids=token_type_ids, position_ids=places
        )
        for layer in self.body.encoder.layer[: self.split_layers]:
            states = through(layer, states, states)
        return states


class UpperLayers(nn.Module):
    """The upper layers of a split reader: the states of both to logits of the passage."""

    def __init__(self, reader: SplitReader) -> None:
        super().__init__()
        self.body, self.split_layers = reader.body, reader.split_layers
        self.span, self.relevance = reader.span, reader.relevance

    def forward(self, question_states: Tensor, levels: Tensor, scales: Tensor) -> Logits:
        """float32 [1, question tokens, width], int8 [1, passage tokens, width] and float32
        [1, passage tokens, 1] to start and end [1, passage tokens] and relevance [1].
        """
        states = torch.cat([question_states, levels.float() * scales], 1)
        *inner, last = self.body.encoder.layer[self.split_layers :]
        for layer in inner:
            states = through(layer, states, states)
        # of the question the heads look at the first token only
        asking = torch.cat([states[:, :1], states[:, question_states.shape[1] :]], 1)
        seen = through(last, asking, states)
        start, end = self.span(seen[:, 1:]).float().unbind(-1)
        return start, end, self.relevance(seen[:, 0]).float().squeeze(-1)


def export_split(reader: SplitReader, lower: Path, upper: Path) -> None:
    """Writes both networks in float32, for one sequence a run, as they are served."""
    ids, width = torch.arange(1000, 1012).unsqueeze(0), reader.body.config.hidden_size
    question, passage = torch.zeros(1, 5, width), torch.ones(1, 9, width, dtype=torch.int8)
    inputs = dict(zip(LOWER_INPUTS, (ids, torch.zeros_like(ids)), strict=True))
    _write(LowerLayers(reader), lower, inputs, LOWER_OUTPUTS)
    inputs = dict(zip(UPPER_INPUTS, (question, passage, torch.ones(1, 9, 1)), strict=True))
    _write(UpperLayers(reader), upper, inputs, READER_OUTPUTS)


def _write(
    network: nn.Module, path: Path, inputs: dict[str, Tensor], outputs: tuple[str, ...]
) -> None:
    axes = {name: {1: _tokens(name)} for name in (*inputs, *outputs) if name != READER_OUTPUTS[2]}
    trace(network, path, inputs=inputs, outputs=outputs, axes=axes)


def _tokens(name: str) -> str:
    """Returns the name of the dynamic axis of an input or output."""
    if name in (*LOWER_INPUTS, *LOWER_OUTPUTS):
        return "tokens"
    return "question_tokens" if name == UPPER_INPUTS[0] else "passage_tokens"
