"""A reader whose lower layers look at question and passage apart (Cao et al. 2020, "DeFormer").

What the lower layers make of a passage does not depend on the question: it can be computed when the
passage is indexed. The upper layers see both, as those of any reader do.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from models.network.architecture import Logits, Reader

PASSAGE_POSITION = 64
"""Position of a passage's first token: behind the longest question, wherever this one ends."""
LEVELS = 127
_NEVER = -1e4


class ApartReader(nn.Module):
    """A reader whose lowest `apart` layers are split; the weights have the names of `Reader`'s."""

    def __init__(self, reader: Reader, apart: int) -> None:
        """Takes over the layers of `reader`."""
        super().__init__()
        self.body, self.span, self.relevance = reader.body, reader.span, reader.relevance
        self.apart = apart

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """As `Reader.forward`: int64 [batch, tokens] three times; segment 1 is the passage."""
        return self.read(self.states(input_ids, attention_mask, token_type_ids)[-1])

    def states(self, ids: Tensor, mask: Tensor, types: Tensor) -> list[Tensor]:
        """The states that the upper layers are given, then those that each of them makes:
        [batch, tokens, width], as tokens stand in `ids`.
        """
        halves = split(mask, types)
        asked = self.lower(halves.question(ids), 0, halves.asked)
        told = self.lower(halves.passage(ids), 1, halves.told)
        joined = torch.cat([asked, as_stored(told)], 1)
        every = self.upper(joined, torch.cat([halves.asked, halves.told], 1))
        return [halves.back(states) for states in (joined, *every)]

    def lower(self, ids: Tensor, segment: int, mask: Tensor) -> Tensor:
        """One half to states [batch, tokens, width]: questions are segment 0, passages 1."""
        first = PASSAGE_POSITION if segment else 0
        places = torch.arange(first, first + ids.shape[1], device=ids.device).expand_as(ids)
        segments = torch.full_like(ids, segment)
        states = self.body.embeddings(input_ids=ids, token_type_ids=segments, position_ids=places)
        for layer in self.body.encoder.layer[: self.apart]:
            states = through(layer, states, states, mask)
        return cast(Tensor, states)

    def upper(self, joined: Tensor, mask: Tensor) -> list[Tensor]:
        """Both halves to the states of every upper layer."""
        found = [joined]
        for layer in self.body.encoder.layer[self.apart :]:
            found.append(through(layer, found[-1], found[-1], mask))
        return found[1:]

    def read(self, states: Tensor) -> Logits:
        """The heads alone, as `Reader.read`."""
        start, end = self.span(states).float().unbind(-1)
        return start, end, self.relevance(states[:, 0]).float().squeeze(-1)


@dataclass(frozen=True, slots=True)
class Halves:
    """Where question and passage of [batch, tokens] stand, each half padded to its longest."""

    asked: Tensor
    """Which places of the question's half hold a token, [batch, question tokens]."""
    told: Tensor
    """The same for the passage's."""
    _asked_at: Tensor
    _told_at: Tensor
    _back: Tensor

    def question(self, values: Tensor) -> Tensor:
        """The question's half of [batch, tokens]."""
        return values.gather(1, self._asked_at)

    def passage(self, values: Tensor) -> Tensor:
        """The passage's half of [batch, tokens]."""
        return values.gather(1, self._told_at)

    def back(self, joined: Tensor) -> Tensor:
        """States of both halves, one behind the other, to where the tokens stood."""
        return joined.gather(1, self._back[..., None].expand(-1, -1, joined.shape[2]))


def split(mask: Tensor, types: Tensor) -> Halves:
    """The halves of [batch, tokens]: a question in segment 0, then its passage in segment 1."""
    told = types * mask
    passages = told.sum(1, keepdim=True)
    questions = mask.sum(1, keepdim=True) - passages
    longest = int(questions.max()), int(passages.max())
    places = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    asked_at, told_at = (places[:, :most] for most in longest)
    back = torch.where(places < questions, places, places - questions + longest[0])
    return Halves(
        asked_at < questions,
        told_at < passages,
        asked_at.minimum(questions - 1),
        told_at.minimum(passages - 1) + questions,
        back.clamp(max=sum(longest) - 1),
    )


def through(layer: nn.Module, asking: Tensor, told: Tensor, mask: Tensor | None = None) -> Tensor:
    """A layer for the tokens `asking`, which look at those of `told` that `mask` has, or at all."""
    whole: Any = layer
    own = whole.attention.self
    query, key, value = (
        linear(states).unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)
        for linear, states in ((own.query, asking), (own.key, told), (own.value, told))
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
