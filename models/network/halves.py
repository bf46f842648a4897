"""The two networks that an `ApartReader` is served as: its lower layers, and its upper ones."""

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from models.network.apart import PASSAGE_POSITION, ApartReader, through
from models.network.architecture import Logits
from models.network.export import OPSET, READER_OUTPUTS

LOWER_INPUTS, LOWER_OUTPUTS = ("input_ids", "token_type_ids"), ("states",)
UPPER_INPUTS = ("question_states", "passage_levels", "passage_scales")


class Lower(nn.Module):
    """A question (segment 0) or a passage (segment 1) to its states."""

    def __init__(self, reader: ApartReader) -> None:
        super().__init__()
        self.body, self.apart = reader.body, reader.apart

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        """int64 [1, tokens] twice to float32 [1, tokens, width]."""
        own = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        places = own + token_type_ids * PASSAGE_POSITION
        states: Tensor = self.body.embeddings(
            input_ids=input_ids, token_type_ids=token_type_ids, position_ids=places
        )
        for layer in self.body.encoder.layer[: self.apart]:
            states = through(layer, states, states)
        return states


class Upper(nn.Module):
    """The states of both to logits of the passage."""

    def __init__(self, reader: ApartReader) -> None:
        super().__init__()
        self.body, self.apart = reader.body, reader.apart
        self.span, self.relevance = reader.span, reader.relevance

    def forward(self, question_states: Tensor, levels: Tensor, scales: Tensor) -> Logits:
        """float32 [1, question tokens, width], int8 [1, passage tokens, width] and float32
        [1, passage tokens, 1] to start and end [1, passage tokens] and relevance [1].
        """
        states = torch.cat([question_states, levels.float() * scales], 1)
        *inner, last = self.body.encoder.layer[self.apart :]
        for layer in inner:
            states = through(layer, states, states)
        # of the question the heads look at the first token only
        asking = torch.cat([states[:, :1], states[:, question_states.shape[1] :]], 1)
        seen = through(last, asking, states)
        start, end = self.span(seen[:, 1:]).float().unbind(-1)
        return start, end, self.relevance(seen[:, 0]).float().squeeze(-1)


def export_halves(reader: ApartReader, lower: Path, upper: Path) -> None:
    """Writes both networks in float32."""
    ids = torch.arange(1000, 1012).unsqueeze(0)
    _write(Lower(reader), lower, (ids, torch.zeros_like(ids)), LOWER_INPUTS, LOWER_OUTPUTS)
    width = reader.body.config.hidden_size
    asked, told = torch.zeros(1, 5, width), torch.ones(1, 9, width, dtype=torch.int8)
    _write(Upper(reader), upper, (asked, told, torch.ones(1, 9, 1)), UPPER_INPUTS, READER_OUTPUTS)


def _write(
    network: nn.Module,
    path: Path,
    given: tuple[Tensor, ...],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
) -> None:
    """One sequence a run, as it is served: only tokens are dynamic."""
    named = {name: {1: _tokens(name)} for name in (*inputs, *outputs)}
    axes = {name: each for name, each in named.items() if name != READER_OUTPUTS[2]}
    network.eval()
    with torch.no_grad(), warnings.catch_warnings():
        # tracing is deprecated in favour of an exporter that needs another package (onnxscript)
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            given,
            str(path),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )


def _tokens(name: str) -> str:
    """Whose tokens an input or output has: graphs name their dynamic lengths."""
    if name in (*LOWER_INPUTS, *LOWER_OUTPUTS):
        return "tokens"
    return "question_tokens" if name == UPPER_INPUTS[0] else "passage_tokens"
