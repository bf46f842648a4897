"""A checkpoint as an encoder of questions or of passages.

Knows how each kind of network makes one vector of a text; how vectors are compared is
`comparison`'s, and whether two encoders belong together `agreement`'s.
"""

from enum import StrEnum

from torch import Tensor, nn
from transformers import (
    BertModel,
    DistilBertModel,
    DPRContextEncoder,
    DPRQuestionEncoder,
    PreTrainedModel,
)

from models.exporting.comparison import AskedByProduct, Direction, FoundByProduct, norm_bound
from models.exporting.errors import CheckpointError
from models.exporting.layout import Checkpoint
from models.exporting.network import body, load, run
from models.exporting.sentence import Pooling, Similarity


class Side(StrEnum):
    """What an encoder encodes."""

    QUESTION = "question"
    PASSAGE = "passage"


_DPR: dict[Side, type[PreTrainedModel]] = {
    Side.QUESTION: DPRQuestionEncoder,
    Side.PASSAGE: DPRContextEncoder,
}


class CheckpointEncoder(nn.Module):
    """Token ids to a vector of norm one."""

    def __init__(self, network: PreTrainedModel, pooling: Pooling, comparison: nn.Module) -> None:
        super().__init__()
        self.network, self.comparison = network, comparison
        self._pooling = pooling

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """int64 [batch, tokens] three times to float32 [batch, dimension]."""
        vectors: Tensor = self.comparison(self.raw(input_ids, attention_mask, token_type_ids))
        return vectors

    def raw(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """The vector as its makers compare it, float32 [batch, width]."""
        output = run(self.network, input_ids, attention_mask, token_type_ids)
        if isinstance(self.network, DPRQuestionEncoder | DPRContextEncoder):
            pooled: Tensor = output.pooler_output
            return pooled
        states: Tensor = output.last_hidden_state
        if self._pooling is Pooling.CLS:
            return states[:, 0]
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        return (states * mask).sum(1) / mask.sum(1).clamp(min=1)

    @property
    def width(self) -> int:
        """Values of the raw vector."""
        projection = _projection(self.network)
        return projection.out_features if projection else int(self.network.config.hidden_size)

    @property
    def dimension(self) -> int:
        """Values of the vector in an index."""
        return self.width + (not isinstance(self.comparison, Direction))


def open_encoder(
    checkpoint: Checkpoint, side: Side, pooling: Pooling, similarity: Similarity
) -> CheckpointEncoder:
    """Loads the checkpoint as an encoder of `side`.

    Raises:
        CheckpointError: it is not one, or its weights are not whole.

    """
    network = _network(checkpoint, side)
    return CheckpointEncoder(network, pooling, _comparison(network, side, similarity))


def _network(checkpoint: Checkpoint, side: Side) -> PreTrainedModel:
    if checkpoint.family == "dpr":
        kind = _DPR[side]
        if checkpoint.architecture != kind.__name__:
            raise CheckpointError(
                f"{checkpoint.directory} holds a {checkpoint.architecture}: to encode a {side} a "
                f"{kind.__name__} is needed"
            )
        return load(checkpoint, kind)
    if checkpoint.architecture.endswith("QuestionAnswering"):
        raise CheckpointError(
            f"{checkpoint.directory} holds a {checkpoint.architecture}, a reader: to encode a "
            f"{side} an encoder is needed"
        )
    if checkpoint.family == "distilbert":
        return load(checkpoint, DistilBertModel)
    return load(checkpoint, BertModel, add_pooling_layer=False)


def _comparison(network: PreTrainedModel, side: Side, similarity: Similarity) -> nn.Module:
    if similarity is Similarity.COSINE:
        return Direction()
    if side is Side.QUESTION:
        return AskedByProduct()
    return FoundByProduct(norm_bound(body(network), _projection(network)))


def _projection(network: nn.Module) -> nn.Linear | None:
    """DPR's optional layer on top."""
    found = (module for name, module in network.named_modules() if name.endswith("encode_proj"))
    return next((module for module in found if isinstance(module, nn.Linear)), None)
